package program

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a member with a session and a real ledger.
type rig struct {
	*testing.T
	home    team.Home
	led     *ledger.Ledger
	member  ledger.Member
	session ledger.Session
	cfg     *config.Config
}

func newRig(t *testing.T) *rig {
	t.Helper()
	home := team.Home{Dir: t.TempDir()}
	layout := home.Team("demo")
	if err := os.MkdirAll(layout.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := ledger.Open(t.Context(), filepath.Join(layout.Dir, "ledger.db"), ledger.Options{Create: true, BusyTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &rig{T: t, home: home, led: ledger.New(db, ledger.Direct(db))}
	if _, err := r.led.CreateTeam(t.Context(), ledger.TeamRow{Key: "demo", LeadSession: team.LeadSessionKey("", "demo")}); err != nil {
		t.Fatal(err)
	}
	key := team.TeammateSessionKey("")
	if r.member, _, err = r.led.AddMember(t.Context(), ledger.Member{SessionKey: key, Name: "dev", Role: team.RoleExecutor, Spec: team.MemberSpec{Agent: "llm"}}, true); err != nil {
		t.Fatal(err)
	}
	if r.session, err = r.led.OpenSession(t.Context(), ledger.NewSession{Key: key, Member: key}); err != nil {
		t.Fatal(err)
	}
	if r.cfg, err = config.Load(home); err != nil {
		t.Fatal(err)
	}
	return r
}

// life starts the member's program.
func (r *rig) life(dir string, environ ...string) *Program {
	r.Helper()
	p := &Program{Team: &tool.Team{Ledger: r.led, Layout: r.home.Team("demo")}, Member: r.member, Env: agent.Env{Dir: dir, Environ: environ}}
	p.begin(agent.Identity{Session: r.member.SessionKey, Name: "dev"})
	r.Cleanup(p.close)
	return p
}

// turn records a turn with one call and its result.
func (r *rig) turn(tool, input, meta string) {
	r.Helper()
	ctx := context.WithoutCancel(r.Context())
	in := ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: "do it"}}
	_, err := r.led.TakeIn(ctx, ledger.TakeIn{Session: r.session.Key, Inputs: []ledger.Input{in}})
	if err != nil {
		r.Fatal(err)
	}
	c, err := r.led.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: r.member.SessionKey, Generation: "g"})
	if err != nil || c == nil {
		r.Fatal(c, err)
	}
	ref := c.Job.Ref()
	_, err = r.led.Answered(ctx, ledger.TurnAnswer{Ref: ref, Entry: ledger.NewEntry{Kind: ledger.EntryAssistant}, Calls: []ledger.NewCall{{CallID: "1", Name: tool, Input: input}}})
	if err == nil {
		_, err = r.led.BeginCall(ctx, ref, "1")
	}
	if err == nil {
		result := ledger.NewEntry{Kind: ledger.EntryToolResult, Content: "x", Meta: json.RawMessage(meta)}
		_, err = r.led.EndCalls(ctx, ledger.TurnResults{Ref: ref, Results: []ledger.CallResult{{CallID: "1", Entry: result}}})
	}
	if err == nil {
		_, err = r.led.EndTurn(ctx, ledger.TurnEnd{Ref: ref, State: team.TurnDone})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// TestTodoComesBack checks that the next process restores the last accepted todo list, and not a
// refused one.
func TestTodoComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("todo", `{"items":[{"text":"test it","state":"doing"}]}`, `{}`)
	r.turn("todo", `{"items":[{"text":"test it","state":"perhaps"}]}`, `{"failed":true}`)
	s, err := r.life(t.TempDir()).space(t.Context(), r.session.Key, r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Todo(); got != "[>] test it\n" {
		t.Errorf("%q", got)
	}
}

// TestLongTextsSurvive checks that the next process can read a stored text, that its file is
// private, and that no other file can be read by its name.
func TestLongTextsSurvive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.life(t.TempDir())
	long := strings.Repeat("line\n", 20_000)
	name, err := texts{p}.Keep(long)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (texts{r.life(t.TempDir())}).Read(name); err != nil || got != long {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := (texts{p}).Read("../../" + name + "/../../ledger.db"); err == nil {
		t.Error("a file elsewhere is read")
	}
	info, err := os.Stat(filepath.Join(p.outputs(), name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}
