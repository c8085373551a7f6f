package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// TestLead: a person's client creates a team, works on it and deletes it.
func TestLead(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { lead(newRig(t), version) })
	}
}

func lead(t rig, version string) {
	r := t
	cs, _ := r.client(r.person(), version)
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("the server speaks %s", got)
	}
	var made tool.TeamCreateOut
	r.call(cs, "TeamCreate", map[string]any{"team_name": "demo", "description": "d", "agent_type": "researcher"}, &made)
	if made.LeadAgentID != "team-lead@demo" {
		t.Errorf("%+v", made)
	}
	if f := r.refused(cs, "TeamCreate", map[string]any{"team_name": "other"}); f.Error != `Already leading team "demo". Use TeamDelete first.` || f.Code != team.CodeConflict {
		t.Errorf("%+v", f)
	}
	var task op.TaskOut
	r.call(cs, "TaskCreate", map[string]any{"subject": "First task", "description": "", "activeForm": "Doing it", "metadata": map[string]any{"k": map[string]any{"v": 1}}}, &task)
	if task.Message != "Task #1 created successfully: First task" || string(task.Task.Metadata) != `{"k":{"v":1}}` {
		t.Errorf("%+v", task)
	}
	r.call(cs, "TaskCreate", map[string]any{"subject": "Second", "description": "", "dependsOn": []string{"#1"}}, nil)
	var list op.TaskListOut
	r.call(cs, "TaskList", nil, &list)
	if list.Text != "#1 [pending] First task\n#2 [pending] Second [blocked by #1]" {
		t.Errorf("%q", list.Text)
	}
	// Dependencies have one name; TaskUpdate takes those of Claude Code's as well.
	for _, c := range []struct {
		key  string
		ids  []string
		want []string
	}{{"removeDependsOn", []string{"#1"}, []string{}}, {"addDependsOn", []string{"1"}, []string{"1"}}, {"removeDependsOn", []string{"1"}, []string{}}, {"addBlockedBy", []string{"1"}, []string{"1"}}} {
		var up op.TaskOut
		r.call(cs, "TaskUpdate", map[string]any{"task_id": "2", c.key: c.ids}, &up)
		if !slices.Equal(up.Task.DependsOn, c.want) {
			t.Errorf("%s %q: it depends on %q", c.key, c.ids, up.Task.DependsOn)
		}
	}
	var st op.TeamStatusOut
	r.call(cs, "TeamStatus", nil, &st)
	if st.You != team.LeadName || len(st.Members) != 1 || st.Tasks.Ready != 1 || st.Description != "d" {
		t.Errorf("%+v", st)
	}
	var gone tool.TeamDeleteOut
	r.call(cs, "TeamDelete", nil, &gone)
	if gone.Message != `Cleaned up directories and worktrees for team "demo"` {
		t.Errorf("%+v", gone)
	}
	r.call(cs, "TeamDelete", nil, &gone)
	if gone.Outcome != tool.AlreadyDeleted || !gone.Success {
		t.Errorf("%+v", gone)
	}
}

// TestMember: a member's client is that member, by its token; the tools are those
// of its role, and what is not offered says why when it is called.
func TestMember(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	r.tasks("one")
	id, token := r.join("bob", team.RoleExecutor)
	if _, err := New(t.Context(), r.member(id, "wrong"), "v0"); !team.IsCode(err, team.CodeDenied) || team.ReasonOf(err) != "token" {
		t.Fatalf("a wrong token: %v", err)
	}
	cs, _ := r.client(r.member(id, token))
	names := r.names(cs)
	for name, want := range map[string]bool{"TaskClaim": true, "SendMessage": true, "InboxRead": true, "TeamCreate": false, "TeamDelete": false,
		"TeammateSpawn": false, "TeammateStop": false, "TeammateMode": false, "ApprovalAnswer": false} {
		if names[name] != want {
			t.Errorf("%s is offered: %v", name, names[name])
		}
	}
	var got op.TaskClaimOut
	r.call(cs, "TaskClaim", nil, &got)
	if got.Task == nil || got.Task.OwnerName != "bob" {
		t.Errorf("%+v", got)
	}
	for name, in := range map[string]map[string]any{
		"TeamCreate": {"team_name": "x"}, "TeamDelete": nil, "TeamShutdown": nil, "TeammateSpawn": {"name": "x"}, "TeammateStop": {"name": "bob"},
	} {
		if f := r.refused(cs, name, in); f.Code != team.CodeDenied {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := r.refused(cs, "TaskList", map[string]any{"team_name": "other"}); f.Code != team.CodeNotFound {
		t.Errorf("another team: %+v", f)
	}
}

// TestModes: the mode of a member narrows what it is offered and may do, and a
// change of it is announced.
func TestModes(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	r.tasks("one")
	id, token := r.join("bob", team.RoleExecutor)
	cs, h := r.client(r.member(id, token))
	all := r.names(cs)
	r.setMode("bob", team.ModePlan)
	r.hear(h.tools, "changed")
	names := r.names(cs)
	for _, o := range op.All() {
		want := all[o.Name] && (len(o.Gates) == 0 || o.Name == "SendMessage" || o.Name == "PlanSubmit")
		if names[o.Name] != want {
			t.Errorf("in plan mode %s is offered: %v", o.Name, names[o.Name])
		}
	}
	if f := r.refused(cs, "TaskClaim", nil); f.Code != team.CodeDenied || f.Reason != "mode" {
		t.Errorf("%+v", f)
	}
	r.setMode("bob", team.ModeDefault)
	// The tools come back one by one. A list that was requested in between is out of date, and the
	// client is told so.
	for r.hear(h.tools, "changed"); !maps.Equal(r.names(cs), all); {
		r.hear(h.tools, "changed")
	}
	r.call(cs, "TaskClaim", nil, nil)
}

// TestDelegate: a lead in delegate mode has the coordination tools and no other.
func TestDelegate(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	cs, h := r.client(r.person())
	r.names(cs) // its answer shows that the server knows the client, which is told of changes from then on
	r.setMode(team.LeadName, team.ModeDelegate)
	r.hear(h.tools, "changed")
	want := []string{"SendMessage", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TeamCreate", "TeamDelete"}
	if got := slices.Sorted(maps.Keys(r.names(cs))); !slices.Equal(got, want) {
		t.Errorf("offered: %v", got)
	}
	for _, o := range op.All() {
		in := map[string]any{}
		if slices.Contains(want, o.Name) {
			continue
		}
		for _, name := range mustSchema(t, o).Required {
			in[name] = sample(mustSchema(t, o).Properties[name])
		}
		if f := r.refused(cs, o.Name, in); f.Code != team.CodeDenied || f.Reason != "mode" {
			t.Errorf("%s: %+v", o.Name, f)
		}
	}
	r.call(cs, "TaskCreate", map[string]any{"subject": "a", "description": ""}, nil)
	p, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "delegate-mode"})
	if err != nil {
		t.Fatal(err)
	}
	text := p.Messages[0].Content.(*sdk.TextContent).Text
	again, _ := r.client(r.person()) // which may never ask for it
	if before, now := cs.InitializeResult().Instructions, again.InitializeResult().Instructions; before != instructions ||
		now != instructions+"\n\n"+text {
		t.Errorf("it is told at the beginning:\n%s\nand then:\n%s", before, now)
	}
	if !strings.Contains(text, `team "demo"`) || !strings.Contains(text, "ledger.db") {
		t.Errorf("%s", text)
	}
	for _, name := range want {
		if !strings.Contains(text, name) {
			t.Errorf("the prompt does not name %s", name)
		}
	}
}

// TestResources: what a client has subscribed to is notified when it changes, and
// nothing else.
func TestResources(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { watched(newRig(t).create(), version) })
	}
}

func watched(r rig, version string) {
	t := r
	id, token := r.join("bob", team.RoleExecutor)
	cs, h := r.client(r.member(id, token), version)
	for _, uri := range []string{URITasks, URIInbox} {
		if err := cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	r.told(h.resources, URITasks, func() { r.tasks("one") })
	sent := 0
	r.told(h.resources, URIInbox, func() {
		sent++
		r.team(func(tm *tool.Team) error {
			_, err := tm.Send(t.Context(), tool.Person(), tool.SendIn{Type: "message", Recipient: "bob", Content: "hello"})
			return err
		})
	})
	for uri, want := range map[string]string{URITasks: `"subject":"one"`, URIInbox: `"text":"hello"`, URIThread: `"text":"hello"`, URIRoster: `"you":"bob"`} {
		res, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Contents[0].Text, want) {
			t.Errorf("%s: %s", uri, res.Contents[0].Text)
		}
	}
	var in tool.InboxOut
	r.call(cs, "InboxRead", nil, &in)
	if len(in.Entries) != sent || in.Entries[0].Text != "hello" {
		t.Errorf("reading the resource marked it read: %+v", in)
	}
}

// TestUnsubscribe: who has let go of a resource is told nothing of it any more. The
// roster has the board in numbers, so it changes whenever the board does; it comes
// first, so the board would be told of before the roster is the next time.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	cs, h := r.client(r.person(), "2025-11-25")
	for _, uri := range []string{URITasks, URIRoster} {
		if err := cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	r.tasks("one")
	r.hear(h.resources, URITasks)
	if err := cs.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: URITasks}); err != nil {
		t.Fatal(err)
	}
	for i, subject := range []string{"two", "three", "four", "five"} {
		r.tasks(subject)
		timeout := time.NewTimer(patience)
		for uri := ""; uri != URIRoster; {
			select {
			case uri = <-h.resources:
			case <-timeout.C:
				t.Fatal("nothing was said of the roster")
			}
			if uri == URITasks && i > 1 { // the look at the second may have begun before
				t.Error("told of the board")
			}
		}
		timeout.Stop()
	}
}

// TestWaits: waiting is by event, tells of progress, and can be cancelled.
func TestWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	r.tasks("one")
	id, token := r.join("bob", team.RoleExecutor)
	cs, h := r.client(r.member(id, token))
	type result struct {
		res *sdk.CallToolResult
		err error
	}
	start := func(ctx context.Context, name string, in map[string]any) chan result {
		done := make(chan result, 1)
		p := &sdk.CallToolParams{Name: name, Arguments: in}
		p.SetProgressToken("p-" + name)
		go func() {
			res, err := cs.CallTool(ctx, p)
			done <- result{res, err}
		}()
		return done
	}
	mail := start(t.Context(), "InboxRead", map[string]any{"wait_seconds": 600})
	r.hear(h.progress, "waiting for mail")
	r.team(func(tm *tool.Team) error {
		_, err := tm.Send(t.Context(), tool.Person(), tool.SendIn{Type: "message", Recipient: "bob", Content: "wake up"})
		return err
	})
	if got := <-mail; got.err != nil || got.res.IsError || !strings.Contains(got.res.Content[0].(*sdk.TextContent).Text, "wake up") {
		t.Errorf("%+v", got)
	}
	wait := start(t.Context(), "Wait", map[string]any{"task_ids": []string{"1"}, "timeout_seconds": 600})
	r.hear(h.progress, "0 of 1 completed, 0 in work, 0 failed")
	r.team(func(tm *tool.Team) error {
		if _, err := tm.TaskClaim(t.Context(), tool.Person(), "1"); err != nil {
			return err
		}
		_, err := tm.TaskComplete(t.Context(), tool.Person(), "1", 0, ledger.Result{})
		return err
	})
	if got := <-wait; got.err != nil || got.res.IsError {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events := start(ctx, "Events", map[string]any{"after": 1000000, "wait_seconds": 600})
	cancel()
	if got := <-events; got.err == nil && !got.res.IsError {
		t.Errorf("not cancelled: %+v", got.res.Content[0])
	}
}

// TestOpensOnce: calls, and looks at the caller's tools, use the ledger that the watch has open.
func TestOpensOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	var mu sync.Mutex
	opened := map[ledger.Writer]int{} // of each open ledger
	r.env.Writer = func(_ team.Layout, direct ledger.Writer) (ledger.Writer, tool.Settler) {
		mu.Lock()
		defer mu.Unlock()
		opened[direct]++
		return direct, nil
	}
	cs, h := r.client(r.member(r.join("bob", team.RoleExecutor)))
	mu.Lock()
	clear(opened) // of join, and of the start
	mu.Unlock()
	r.setMode("bob", team.ModePlan)
	r.hear(h.tools, "")
	for range 3 {
		r.call(cs, "TaskList", nil, nil)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(opened) > 2 { // one is setMode's
		t.Errorf("ledgers were opened: %v", opened)
	}
}

// TestLogs: a client that wants logs hears of a refusal.
func TestLogs(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	cs, h := r.client(r.person(), "2025-11-25")
	if err := cs.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "warning"}); err != nil { //nolint:staticcheck // as in server.go
		t.Fatal(err)
	}
	r.refused(cs, "TaskGet", map[string]any{"task_id": "9"})
	r.hear(h.logs, `{"code":"not_found","error":"no task \"9\"","tool":"TaskGet"}`)
}

// TestListed: the list of tools has each operation with its schemas.
func TestListed(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	cs, _ := r.client(r.person())
	res, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]*sdk.Tool{}
	for _, tool := range res.Tools {
		listed[tool.Name] = tool
	}
	sorted := func(v any) string {
		var back any
		b, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err == nil {
			b, err = json.Marshal(back)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, o := range op.All() {
		in, err := o.InputSchema()
		if err != nil {
			t.Fatal(err)
		}
		out, err := o.OutputSchema()
		if err != nil {
			t.Fatal(err)
		}
		got := listed[o.Name]
		if got == nil || got.Title != o.Title() || got.Description != o.Doc() || got.Annotations == nil || got.Annotations.ReadOnlyHint != o.ReadOnly ||
			sorted(got.InputSchema) != sorted(in) || sorted(got.OutputSchema) != sorted(out) {
			t.Errorf("%s is listed as %+v", o.Name, got)
		}
	}
}

// TestDescribed: every tool's results fit the output schema that it declares.
func TestDescribed(t *testing.T) {
	t.Parallel()
	for _, o := range op.All() {
		tool, err := describe(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(tool); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
}

// TestInstructionsIntroduce: a member learns at the beginning who it is and who is there;
// the person's own client is told nothing of that kind.
func TestInstructionsIntroduce(t *testing.T) {
	t.Parallel()
	r := newRig(t).create()
	r.join("rita", team.RoleReviewer)
	cs, _ := r.client(r.member(r.join("bob", team.RoleExecutor)))
	text := cs.InitializeResult().Instructions
	for _, want := range []string{`You are "bob", a member of the team "demo".`, "Your role is executor", "\n- team-lead: leader", "\n- rita: reviewer"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	cs, _ = r.client(r.person())
	if got := cs.InitializeResult().Instructions; got != instructions {
		t.Errorf("a person's client is told\n%s", got)
	}
}
