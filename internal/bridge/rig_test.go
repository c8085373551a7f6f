package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func TestMain(m *testing.M) {
	if home := os.Getenv("BRIDGE_TEST_HOME"); home != "" {
		os.Exit(child(home, os.Getenv("BRIDGE_TEST_DIR")))
	}
	goleak.VerifyTestMain(m)
}

// rig is a team of ours without processes, and one of the program: files that the test
// writes as the program would.
type rig struct {
	*testing.T
	team *tool.Team
	dir  string

	mu    sync.Mutex
	notes []Note
}

const nativeName = "alpha"

func newRig(t *testing.T) *rig {
	t.Helper()
	e := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := e.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := e.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tm.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{T: t, team: tm, dir: t.TempDir()}
	for _, d := range []string{r.native().inboxes(), r.native().tasks()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.write(r.native().config(), `{
  "name": "alpha",
  "description": "theirs",
  "createdAt": 1795236000000,
  "leadAgentId": "team-lead@alpha",
  "leadSessionId": "00000000-0000-4000-8000-000000000001",
  "members": [
    {
      "agentId": "team-lead@alpha",
      "name": "team-lead",
      "agentType": "team-lead",
      "joinedAt": 1795236000000,
      "tmuxPaneId": "",
      "cwd": "/p",
      "subscriptions": []
    },
    {
      "agentId": "researcher@alpha",
      "name": "researcher",
      "agentType": "general-purpose",
      "model": "claude-opus-4-6",
      "prompt": "look",
      "color": "green",
      "planModeRequired": false,
      "joinedAt": 1795236672316,
      "tmuxPaneId": "%3",
      "cwd": "/p",
      "subscriptions": [],
      "backendType": "tmux",
      "isActive": false,
      "kept": {
        "as": "it is"
      }
    }
  ]
}`)
	return r
}

func (r *rig) native() native { return native{r.dir, nativeName} }

func (r *rig) write(path, text string) {
	r.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) in() In {
	return In{Team: r.team, Caller: tool.Person(), Dir: r.dir, Native: nativeName, Say: func(n Note) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notes = append(r.notes, n)
	}}
}

// once brings both sides together.
func (r *rig) once() {
	r.Helper()
	in := r.in()
	in.Once = true
	if err := Run(r.Context(), in); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) said(what, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.notes, func(n Note) bool { return n.What == what && n.Name == name })
}

// member is one of ours that looks like one that runs.
func (r *rig) member(name string) ledger.Member {
	r.Helper()
	m, _, err := r.team.Ledger.AddMember(r.Context(), ledger.Member{Name: name, Desired: team.WantRunning, Observed: team.Running,
		Spec: team.MemberSpec{Agent: "worker", Backend: "tmux", Cwd: "/ours"}}, true)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

func (r *rig) caller(m ledger.Member) tool.Caller {
	return tool.Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}
}

func (r *rig) send(from tool.Caller, to, text string) string {
	r.Helper()
	out, err := r.team.Send(r.Context(), from, tool.SendIn{Type: "message", Recipient: to, Content: text})
	if err != nil {
		r.Fatal(err)
	}
	return out.MessageID
}

func (r *rig) config() *team.Config {
	r.Helper()
	c, err := team.ReadConfig(r.native().config())
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// box is a mailbox there as the program sees it.
func (r *rig) box(name string) []inbox.Entry {
	r.Helper()
	for until := time.Now().Add(5 * time.Minute); ; {
		entries, err := readBox(r.native(), name)
		if err == nil {
			return entries
		}
		if !notWhole(err) || time.Now().After(until) {
			r.Fatal(err)
		}
		pause.For(r.Context(), time.Millisecond) // it was replaced while it was opened
	}
}

func readBox(n native, name string) ([]inbox.Entry, error) {
	b, err := inbox.Open(n.inboxes(), n.inboxes(), name)
	if err != nil {
		return nil, err
	}
	return b.Look()
}

// here is what stands in the mailbox of one of ours.
func (r *rig) here(name string) []tool.InboxEntry {
	r.Helper()
	out, err := r.team.Inbox(r.Context(), name, false)
	if err != nil {
		r.Fatal(err)
	}
	return out.Entries
}

// program writes as the program does: under its lock, in place or by rename, with or
// without ids.
type program struct {
	native
	inPlace bool
	ids     bool
	busy    bool // it keeps what it takes, and does not begin a turn with it
}

// mail appends to a mailbox there.
func (w program) mail(r *rig, to, from, text string) error {
	e := map[string]any{"from": from, "text": text, "timestamp": inbox.Timestamp(time.Now()), "read": false}
	if w.ids {
		e["msgV"], e["msg_id"], e["type"] = 1, team.NewUUID(), "message"
	}
	path := filepath.Join(w.inboxes(), to+".json")
	return w.edit(r, path, func(list []map[string]any) []map[string]any { return append(list, e) })
}

// take is the program's poll: it takes what is unread, by pruning or by marking.
func (w program) take(r *rig, name string) (texts []string, err error) {
	path := filepath.Join(w.inboxes(), name+".json")
	err = w.edit(r, path, func(list []map[string]any) []map[string]any {
		var left []map[string]any
		for _, e := range list {
			if e["read"] == false {
				text, _ := e["text"].(string)
				texts = append(texts, text)
			}
			if e["read"] = true; w.inPlace {
				left = append(left, e)
			}
		}
		return left
	})
	if err == nil && !w.busy {
		err = w.turn(r, name, texts)
	}
	return texts, err
}

// turn is a turn of the program with some mail, as its record of the conversation has it.
func (w program) turn(r *rig, name string, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	line, file := map[string]any{"type": "user"}, "00000000-0000-4000-8000-000000000001"
	if name != team.LeadName {
		line["agentName"], line["teamName"], file = name, nativeName, name
	}
	var frames []string
	for _, t := range texts {
		frames = append(frames, "<teammate-message teammate_id=\"x\">\n"+strings.ReplaceAll(t, "</teammate-message", `<\/teammate-message`)+"\n</teammate-message>")
	}
	line["message"] = map[string]any{"role": "user", "content": strings.Join(frames, "\n\n")}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(data, []byte(`
{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}}
`)...)
	path := filepath.Join(w.dir, "projects", "p", file+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (w program) edit(r *rig, path string, change func([]map[string]any) []map[string]any) error {
	return mkdirlock.Hold(r.Context(), path+".lock", 0o755, func(func() error) error {
		list := []map[string]any{}
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(data) > 0 {
			if err := json.Unmarshal(data, &list); err != nil {
				return err
			}
		}
		if list = change(list); list == nil {
			list = []map[string]any{}
		}
		out, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			return err
		}
		if w.inPlace {
			return os.WriteFile(path, out, 0o600)
		}
		tmp := fmt.Sprintf("%s.tmp.%08x", path, time.Now().UnixNano())
		if err := os.WriteFile(tmp, out, 0o600); err != nil {
			return err
		}
		return os.Rename(tmp, path)
	})
}

// task writes a task file as the program does.
func (r *rig) task(id, rest string) {
	r.write(r.native().taskPath(id), `{"id":"`+id+`",`+rest+`}`)
}

func (r *rig) nativeTasks() map[string]nativeTask {
	r.Helper()
	all, _, whole, err := r.native().readTasks()
	if err != nil || !whole {
		r.Fatalf("read the tasks there: whole %v, %v", whole, err)
	}
	return all
}

// child runs a bridge in a process of its own, to be killed.
func child(home, dir string) int {
	e := &tool.Env{Home: team.Home{Dir: home}}
	ctx, stop := childContext()
	defer stop()
	tm, err := e.Open(ctx, "demo")
	if ctx.Err() != nil { // it was told to end before it had begun: others did its work
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = Run(ctx, In{Team: tm, Caller: tool.Person(), Dir: dir, Native: nativeName})
	if err = errors.Join(err, tm.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	end := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-t.C:
		case <-end:
			r.Fatalf("waited in vain: %s", what)
		}
	}
}
