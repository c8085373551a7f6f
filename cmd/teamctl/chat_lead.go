package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/proc"
	runner "github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// teamOn chooses the team on a repository, and makes it if there is none.
func (a *app) teamOn(ctx context.Context, repo string) error {
	env, err := a.tools()
	if err != nil {
		return err
	}
	keys, root, err := env.TeamsOn(ctx, repo)
	if err != nil {
		return err
	}
	name := a.team
	if name == "" {
		name = os.Getenv(team.EnvTeam)
	}
	if name != "" {
		key, err := team.TeamKey(name)
		if err != nil {
			return err
		}
		name = key
	}
	switch {
	case name != "" && slices.Contains(keys, name):
		return nil
	case name == "" && len(keys) == 1:
		a.team = keys[0]
		return nil
	case name == "" && len(keys) > 1:
		return team.Errorf(team.CodeInvalid, "there are %d teams on this repository: %s", len(keys), strings.Join(keys, ", ")).
			WithReason(team.ReasonTeamAmbiguous).WithHint("add --team " + keys[0])
	}
	made, err := env.TeamCreate(ctx, a.outsider(), tool.TeamCreateIn{TeamName: cmp.Or(name, filepath.Base(root)), Repo: root, Unique: name == ""})
	if err != nil {
		return err
	}
	a.team = made.TeamName
	a.out.note("made team %s on %s", made.TeamName, root)
	return nil
}

// leadRun is the lead's conversation while this process runs it.
type leadRun struct {
	ctx        context.Context // ends with the conversation's run; its cause says why
	interrupts chan struct{}   // each ends the turn under way
	open       func()          // its screen may be written from now on
	stop       func() error    // ends the run: a turn under way goes on with the next one
}

// errLeadEnd ends the run of a conversation.
var errLeadEnd = errors.New("the chat has ended")

// runLead runs the lead's conversation in this process, with its screen at out; nil
// while another process does.
func (ch *chat) runLead(ctx context.Context, out io.Writer) (_ *leadRun, err error) {
	if !ch.caller.Person {
		return nil, team.Errorf(team.CodeDenied, "%s is not a person, and the lead's conversation is its person's", ch.caller.Name).
			WithReason(team.ReasonNotAPerson).WithHint("teamctl send " + team.LeadName + " TEXT")
	}
	if ch.team.Elsewhere != nil {
		return nil, ch.team.Elsewhere
	}
	lock, mine, err := filelock.TryLock(ch.team.Layout.LeadLock())
	if err != nil || !mine {
		return nil, err
	}
	opened := make(chan struct{})
	run := &leadRun{interrupts: make(chan struct{}, 1), open: sync.OnceFunc(func() { close(opened) })}
	defer func() {
		if err != nil {
			_ = lock.Unlock() // the kernel frees it in any case
		}
	}()
	at, err := proc.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	mark, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(ch.team.Layout.LeadProcess(), mark, 0o600, false); err != nil {
		e := team.Errorf(team.CodeUnavailable, "note which process leads: %w", err)
		if errors.Is(err, syscall.ENOSPC) {
			e = e.WithReason(team.ReasonDiskFull).WithHint("free some space")
		}
		return nil, e
	}
	screen := &lateWriter{w: out, open: opened}
	p, watch, err := ch.leadProgram(ctx, screen, out != io.Discard)
	if err != nil {
		return nil, err
	}
	p.Interrupt = run.interrupts
	id := agent.Identity{
		AgentID: ch.member.AgentID, Name: ch.member.Name, Team: ch.team.Layout.Key, AgentType: ch.member.Spec.AgentType, Session: ch.member.SessionKey,
		Generation: team.NewUUID(), Role: team.RoleLeader, Mode: ch.member.Spec.Mode,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	run.ctx = ctx
	ended := make(chan error, 1)
	go func() {
		err := p.Run(ctx, id)
		cancel(err) // where it has ended by itself, so does the chat
		ended <- err
	}()
	run.stop = sync.OnceValue(func() error {
		screen.over.Store(true)
		run.open() // it may wait for that
		cancel(errLeadEnd)
		err := <-ended
		if errors.Is(err, errLeadEnd) || errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled) {
			err = nil // that is how it ends, or why the chat has
		}
		none, nothing := team.ActivityUnknown, team.WaitFor("")
		_, uerr := ch.team.Ledger.UpdateMember(context.WithoutCancel(ctx), ledger.MemberPatch{SessionKey: id.Session, Activity: &none, WaitsFor: &nothing})
		_ = os.Remove(ch.team.Layout.LeadProcess()) // a process that has ended is nobody's parent
		return errors.Join(err, uerr, watch.Close(), lock.Unlock())
	})
	return run, nil
}

// leadProgram is the agent that leads the team, with its screen at out.
func (ch *chat) leadProgram(ctx context.Context, out io.Writer, shown bool) (*program.Program, *inbox.Watcher, error) {
	t, m := ch.team, ch.member
	env, err := ch.tools()
	if err != nil {
		return nil, nil, err
	}
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return nil, nil, err
	}
	dir := row.Repo
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return nil, nil, team.Errorf(team.CodeUnavailable, "find the working directory: %w", err)
		}
	}
	box, err := inbox.Open(t.Layout.Inboxes(), t.Layout.Locks(), m.Name)
	if err != nil {
		return nil, nil, err
	}
	watch, err := inbox.WatchBy(ctx, t.Watch, t.Layout.Inboxes())
	if err != nil {
		return nil, nil, err
	}
	if note, err := env.CheckModel(ctx, ""); err == nil && note != "" && shown {
		ch.out.note("%s", note)
	}
	lead := tool.Lead(m)
	return &program.Program{
		Tools: env, Team: t, Member: m, Place: place(),
		Who: func(ctx context.Context, t *tool.Team) (tool.Caller, error) {
			now, err := t.Ledger.Member(ctx, team.LeadName) // its mode may have changed
			return tool.Lead(now), err
		},
		Env: agent.Env{
			Ledger: t.Ledger.As(m.Name), Tasks: t.WorkOf(lead), Box: leadBox{box, t}, Post: t.PostAs(lead), Mail: watch.Changes(m.Name),
			Dir: dir, Out: out, Environ: leadEnviron(t.Layout, m), Commands: runner.BookOf(t.Layout),
		},
	}, watch, nil
}

// leadEnviron is the environment of what the lead's tools start: it acts for the lead, and
// has no token, so that teamctl acts for nobody there.
func leadEnviron(l team.Layout, m ledger.Member) []string {
	own := map[string]string{team.EnvAgentID: m.AgentID, team.EnvTeam: l.Key, team.EnvHome: l.Home.Dir}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, set := own[name]
		return set || name == team.EnvToken
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// leadBox is the lead's mailbox. What others have asked for in the file is put into the
// queue of approvals before its entry is read.
type leadBox struct {
	*inbox.Box
	team *tool.Team
}

// Unread is agent.Mailbox.
func (b leadBox) Unread(ctx context.Context) ([]inbox.Entry, error) {
	entries, err := b.Box.Unread(ctx)
	if err != nil || len(entries) == 0 {
		return entries, err
	}
	if err := b.team.TakeAsked(ctx); err != nil && !team.IsCode(err, team.CodeDenied) && !team.IsCode(err, team.CodeInvalid) &&
		!team.IsCode(err, team.CodeConflict) && !team.IsCode(err, team.CodeLimit) {
		return nil, fmt.Errorf("take up what was asked for: %w", err)
	}
	return entries, nil
}

// lateWriter is a screen that nothing is written to before it is open, or after the chat.
type lateWriter struct {
	w    io.Writer
	open <-chan struct{}
	over atomic.Bool
}

// Write implements io.Writer.
func (l *lateWriter) Write(p []byte) (int, error) {
	<-l.open
	if l.over.Load() {
		return len(p), nil
	}
	return l.w.Write(p)
}
