package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// standIns is a team of all stand-ins.
type standIns struct {
	*testing.T
	ctx context.Context
	w   *world
	tm  *tool.Team
	all []agentlab.Client
}

// TestStandIns checks with one team of all stand-ins what their turns use, in which order mail
// arrives, that mail survives a compaction, and what a usage limit does.
func TestStandIns(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	ctx := context.WithoutCancel(t.Context())
	dir := t.TempDir()
	s := &standIns{T: t, ctx: ctx, all: fakes(t, dir)}
	var err error
	if s.w, err = newWorld(ctx, options{exe: build(t, dir), cache: filepath.Join(dir, "cache"), limit: 5 * time.Minute}, s.all); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.w.close(false); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv(team.EnvRuntime, s.w.Sockets) // we are one of the team's processes
	for _, c := range s.all {
		s.must("spawn", c.Name, "--agent", c.Name, "--session", "--prompt", "@@shell echo hi\n@@say here-"+c.Name)
	}
	env := tool.Env{Home: team.Home{Dir: filepath.Join(s.w.Dir, "t")}, Dial: control.Dialer([]string{s.w.exe}), Writer: control.Writer}
	if s.tm, err = env.Open(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.tm.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range s.all {
		s.arrives("here-" + c.Name)
	}
	for _, step := range []struct {
		name string
		do   func(*standIns)
	}{
		{"tokens are counted", (*standIns).counts},
		{"shutdown, lead, peers", (*standIns).order},
		{"compacted before it was read", (*standIns).compaction},
		{"killed before the model has answered", (*standIns).killed},
		{"left by an interrupted turn", (*standIns).left},
		{"a usage limit", (*standIns).limits},
		{"a limit that ends by itself", (*standIns).limitEnds},
	} {
		t.Run(step.name, func(t *testing.T) {
			part := *s
			part.T = t
			step.do(&part)
		})
	}
}

func (s *standIns) must(args ...string) string {
	s.Helper()
	out, err := s.w.teamctl(s.ctx, args...)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

func (s *standIns) arrives(text string) {
	s.Helper()
	if _, err := s.w.asked(s.ctx, text); err != nil {
		s.Fatal(err)
	}
}

func (s *standIns) until(what string, ok func() (bool, error)) {
	s.Helper()
	if err := s.w.until(s.ctx, what, ok); err != nil {
		s.Fatal(err)
	}
}

// post posts in any order, also without a supervisor.
func (s *standIns) post(in ledger.NewMessage) string {
	s.Helper()
	m, _, err := mail.Mailer{Layout: s.tm.Layout, Ledger: s.tm.Ledger}.Post(s.ctx, in)
	if err != nil {
		s.Fatal(err)
	}
	return m.ID
}

func (s *standIns) tell(to, text string) string {
	s.Helper()
	return s.post(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: to, Text: text})
}

func (s *standIns) state(id string) ledger.Delivery {
	s.Helper()
	ds, err := s.tm.Ledger.Deliveries(s.ctx, id)
	if err != nil || len(ds) != 1 {
		s.Fatal(len(ds), err)
	}
	return ds[0]
}

func (s *standIns) is(want team.DeliveryState, ids ...string) {
	s.Helper()
	s.until(string(want), func() (bool, error) {
		for _, id := range ids {
			if d := s.state(id); d.State != want {
				return false, fmt.Errorf("%s to %s is %s (%s%s)", id, d.Recipient, d.State, d.Reason, d.Evidence)
			}
		}
		return true, nil
	})
}

// busy has every stand-in run a command that ends when the returned function is called.
func (s *standIns) busy(name string, who ...agentlab.Client) (release func()) {
	s.Helper()
	flag := filepath.Join(s.w.Dir, name)
	for _, c := range who {
		s.tell(c.Name, fmt.Sprintf("%s-%s\n@@shell until test -e %s; do read -t 0.1 <> <(:); done\n@@say over", name, c.Name, flag))
	}
	for _, c := range who {
		s.arrives(name + "-" + c.Name)
	}
	return func() {
		s.Helper()
		if err := os.WriteFile(flag, nil, 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// conversation is the newest request of a stand-in, found by its name.
func (s *standIns) conversation(mark string) string {
	reqs := s.w.model.Requests()
	for i := len(reqs) - 1; i >= 0; i-- {
		if !reqs[i].Side && strings.Contains(reqs[i].Body, mark) {
			return reqs[i].Body
		}
	}
	return ""
}

func (s *standIns) counts() {
	s.until("counted", func() (bool, error) {
		var u struct{ Members []tool.MemberUsage }
		if err := json.Unmarshal([]byte(s.must("usage", "--json")), &u); err != nil {
			return false, err
		}
		n := 0
		for _, m := range u.Members {
			if m.Name == team.LeadName {
				continue
			}
			n++
			if !m.Counted || m.InputTokens < 200 || m.OutputTokens < 20 {
				return false, fmt.Errorf("%s: %+v", m.Name, m)
			}
		}
		return n == len(s.all), nil
	})
}

// without ends the supervisor and keeps the agents' own commands from starting the next one until
// start is called.
func (s *standIns) without() (start func()) {
	s.Helper()
	for {
		killSupervisor(s.T, s.w)()
		held, ok, err := filelock.TryLock(s.tm.Layout.SupervisorLock())
		if err != nil {
			s.Fatal(err)
		}
		if ok {
			return func() {
				s.Helper()
				if err := held.Unlock(); err != nil {
					s.Fatal(err)
				}
			}
		}
	}
}

// pids are the processes of the members that have one.
func (s *standIns) pids() map[string]int {
	s.Helper()
	all, err := s.w.members(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]int{}
	for _, m := range all {
		if m.PID != 0 {
			out[m.Name] = m.PID
		}
	}
	return out
}

// inMidTurn says how far a message gets in mid-turn, for programs with a server: a session of
// opencode has it at once, a thread of Codex at the next boundary.
var inMidTurn = map[string]team.DeliveryState{"codex": team.Injected, "opencode": team.Accepted}

// order checks that mail which was posted without a supervisor arrives by urgency, in mid-turn, and
// that the next supervisor keeps the agents.
func (s *standIns) order() {
	release := s.busy("order", s.all...)
	before := s.pids()
	start := s.without()
	var ids []string
	for i, c := range s.all {
		peer := s.all[(i+1)%len(s.all)]
		ids = append(ids,
			s.post(ledger.NewMessage{Kind: team.KindMessage, From: peer.Name, To: c.Name, Text: "peer-for-" + c.Name}),
			s.tell(c.Name, "lead-for-"+c.Name),
			s.post(ledger.NewMessage{Kind: team.KindShutdownRequest, From: team.LeadName, To: c.Name, RequestID: "stop-for-" + c.Name,
				Text: `{"type":"shutdown_request","requestId":"stop-for-` + c.Name + `","from":"team-lead"}`}))
	}
	start()
	s.must("ps") // starts the next supervisor
	for i, c := range s.all {
		if state := inMidTurn[c.Name]; state != "" {
			s.is(state, ids[3*i:3*i+3]...)
		}
	}
	if after := s.pids(); !maps.Equal(before, after) {
		s.Errorf("the agents were %v and are %v", before, after)
	}
	release()
	for _, c := range s.all {
		s.arrives("peer-for-" + c.Name)
	}
	s.is(team.Accepted, ids...)
	for _, c := range s.all {
		body := s.conversation("peer-for-" + c.Name)
		last := -1
		for _, what := range []string{"stop-for-", "lead-for-", "peer-for-"} {
			at := strings.Index(body, what+c.Name)
			if at <= last {
				s.Errorf("%s: %s stands at %d, what is more urgent at %d", c.Name, what, at, last)
			}
			last = at
		}
		for _, what := range []string{"lead-for-", "peer-for-"} {
			if n := strings.Count(body, what+c.Name); n != 1 {
				s.Errorf("%s%s came %d times", what, c.Name, n)
			}
		}
	}
}

// compaction checks that a message whose conversation is compacted between its hand-over and the
// model's next answer is in the conversation that continues, once.
func (s *standIns) compaction() {
	who := s.all
	release := s.busy("compact", who...)
	var ids []string
	for _, c := range who {
		id := s.tell(c.Name, "kept-for-"+c.Name)
		ids = append(ids, id)
		if state := inMidTurn[c.Name]; state != "" {
			s.is(state, id)
		}
		file := filepath.Join(s.w.User, ".compact", c.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	release()
	for _, c := range who {
		s.arrives("kept-for-" + c.Name)
	}
	s.is(team.Accepted, ids...)
	for _, c := range who {
		body := s.conversation("kept-for-" + c.Name)
		if !strings.Contains(body, "Its summary: work was done") {
			s.Errorf("%s was not compacted", c.Name)
		}
		if n := strings.Count(body, "kept-for-"+c.Name); n != 1 {
			s.Errorf("kept-for-%s stands there %d times", c.Name, n)
		}
	}
}

// killed checks that a message which Claude Code has recorded, and which the model has not answered
// when the program is killed, is in the conversation that is resumed, and is not given again. A hook
// adds it, unless the machine is so slow that all hooks run out of their time: then a prompt has it.
func (s *standIns) killed() {
	const agent, text = "claude", "mail-for-claude"
	i := slices.IndexFunc(s.all, func(c agentlab.Client) bool { return c.Name == agent })
	release := s.busy("killed", s.all[i])
	id := s.tell(agent, text+"\n@@sleep 10m\n@@say never")
	conversation, err := s.w.conversation(agent)
	if err != nil {
		s.Fatal(err)
	}
	pid := s.pids()[agent]
	release()
	s.arrives(text)
	var b []byte
	defer func() {
		if s.Failed() {
			s.Logf("its record: %s", b)
		}
	}()
	s.until("recorded", func() (bool, error) {
		var err error
		b, err = os.ReadFile(filepath.Join(s.w.User, ".claude", "projects", "p", conversation+".jsonl"))
		return slices.ContainsFunc(strings.SplitAfter(string(b), "\n"), func(line string) bool {
			whole := strings.HasSuffix(line, "\n") && strings.Contains(line, text)
			return whole && (strings.Contains(line, "hook_additional_context") || strings.Contains(line, `"type":"user"`))
		}), err
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.is(team.Accepted, id)
	_, turn, _ := strings.Cut(s.conversation(text), "killed-"+agent)
	if n := strings.Count(turn, text); n != 1 || strings.Contains(turn, "You may know the next message already") {
		s.Errorf("it is %d times in its conversation: %s", n, turn)
	}
}

// left checks that a message which opencode has stored in a turn that was interrupted, and does not
// run, is run once by the next supervisor, which knows of no interrupt.
func (s *standIns) left() {
	const agent = "opencode"
	i := slices.IndexFunc(s.all, func(c agentlab.Client) bool { return c.Name == agent })
	s.busy("left", s.all[i])
	ids := []string{s.tell(agent, "left-one"), s.tell(agent, "left-two")}
	s.is(inMidTurn[agent], ids...)
	s.must("interrupt", agent)
	killSupervisor(s.T, s.w)()
	s.must("ps")
	s.arrives("left-one")
	s.is(team.Accepted, ids...)
	for _, text := range []string{"left-one", "left-two"} {
		if n := s.w.model.Arrivals(text); n != 1 {
			s.Errorf("%s came %d times", text, n)
		}
	}
}

// limitWords are the texts by which the programs report that a limit is reached.
var limitWords = map[string]string{
	"claude":   "You've hit your usage limit · resets 3pm",
	"codex":    "You've hit your usage limit. Try again in 3 days.",
	"gemini":   "Usage limit reached for all Pro models: usage limit",
	"opencode": "usage limit reached",
}

func (s *standIns) limits() {
	for i, c := range s.all {
		s.tell(c.Name, "@@fail 429 "+limitWords[c.Name])
		s.until("limited", func() (bool, error) {
			m, err := s.w.member(s.ctx, c.Name)
			return m.Activity == "limited" && s.events(team.EventUsageLimited, c.Name) == 1, err
		})
		if i == 0 { // the others continue
			for _, other := range s.all[1:] {
				s.tell(other.Name, "free-"+other.Name)
				s.arrives("free-" + other.Name)
			}
		}
	}
	var ids []string
	for _, c := range s.all {
		_, err := s.w.teamctl(s.ctx, "spawn", "second-"+c.Name, "--agent", c.Name, "--session")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 6 || !strings.Contains(err.Error(), "teamctl usage resume "+c.Name) {
			s.Errorf("spawned another %s: %v", c.Name, err)
		}
		ids = append(ids, s.tell(c.Name, "held-for-"+c.Name))
	}
	s.is(team.Held, ids...)
	// The next command meets the supervisor while it exits, and starts another nevertheless.
	gone := killSupervisor(s.T, s.w)
	for i, c := range s.all {
		if d := s.state(ids[i]); d.State != team.Held || !strings.Contains(d.Reason, "usage limit") {
			s.Errorf("the mail of %s is %s: %s", c.Name, d.State, d.Reason)
		}
		s.must("usage", "resume", c.Name)
	}
	gone()
	for _, c := range s.all {
		s.arrives("held-for-" + c.Name)
		s.arrives("The usage limit that stopped you is over")
	}
	s.is(team.Accepted, ids...)
	for _, c := range s.all {
		if n := s.w.model.Arrivals("held-for-" + c.Name); n != 1 {
			s.Errorf("held-for-%s came %d times", c.Name, n)
		}
		s.until("not limited", func() (bool, error) {
			m, err := s.w.member(s.ctx, c.Name)
			return m.Activity != "limited", err
		})
	}
}

// limitEnds checks that with onLimit: resume the team continues by itself.
func (s *standIns) limitEnds() {
	if err := s.tm.SetBudgets(s.ctx, tool.Person(), team.Budgets{Resume: true}); err != nil {
		s.Fatal(err)
	}
	const agent = "codex"
	limited, resumed := s.events(team.EventUsageLimited, agent), s.events(team.EventUsageResumed, agent)
	s.tell(agent, "@@fail 429 You've hit your usage limit, until within 20s")
	s.until("limited", func() (bool, error) { return s.events(team.EventUsageLimited, agent) == limited+1, nil })
	id := s.tell(agent, "later-for-"+agent)
	s.until("over", func() (bool, error) { return s.events(team.EventUsageResumed, agent) == resumed+1, nil })
	s.arrives("later-for-" + agent)
	s.is(team.Accepted, id)
	if n := s.w.model.Arrivals("later-for-" + agent); n != 1 {
		s.Errorf("it came %d times", n)
	}
}

// events counts the events of one kind and id.
func (s *standIns) events(what, id string) (n int) {
	s.Helper()
	all, err := s.tm.Ledger.Events(s.ctx, 0, 0, ledger.EventFilter{})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range all {
		if e.What == what && e.ID == id {
			n++
		}
	}
	return n
}
