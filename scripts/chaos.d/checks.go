package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// baseline is what the supervisor and the tmux server had open when the team first ran.
type baseline struct{ sup, supPTYs, tmuxPTYs int }

// allowance on top of the baseline: connections that idle, a pane that is being
// replaced.
const allowance = 8

// quick checks what has to hold at every moment.
func (w *world) quick() error {
	bad := w.never(context.Background())
	_, _, wrong := w.traffic.snapshot()
	for _, err := range wrong {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 {
		return violation{bad}
	}
	return nil
}

// never lists states that must not occur at any moment: two generations of a member, an exit or a
// completion that was reported twice, a duplicate message in a mailbox, a lost status taken for
// success, a damaged ledger.
func (w *world) never(ctx context.Context) []string {
	bad := append(w.doubles(), w.look(ctx)...)
	for _, a := range w.members {
		for id, n := range w.mail(a.name) {
			if n > 1 {
				bad = append(bad, fmt.Sprintf("message %s stands %d times in the mailbox of %s", id, n, a.name))
			}
		}
	}
	return bad
}

// seen is the state that the events have reported so far: in a long run there are too many to read
// all of them after every fault.
type seen struct {
	seq         int64
	exits       map[string]bool   // generations whose exit was reported
	started     map[string]string // generations that were started and have not exited, and of whom
	completions map[string]bool
}

// look reads the events that are new.
func (w *world) look(ctx context.Context) (bad []string) {
	s := &w.seen
	if s.exits == nil {
		s.exits, s.started, s.completions = map[string]bool{}, map[string]string{}, map[string]bool{}
	}
	events, err := w.team.Ledger.Events(ctx, s.seq, 0, ledger.EventFilter{})
	if err != nil {
		return []string{"read events: " + err.Error()}
	}
	for _, e := range events {
		s.seq = e.Seq
		switch {
		case e.What == team.EventMemberState && e.After == string(team.Starting):
			s.started[stateOf(e).Generation] = e.ID
		case e.What == team.EventMemberState && e.After == string(team.Exited):
			d := stateOf(e)
			if s.exits[d.Generation] {
				bad = append(bad, fmt.Sprintf("exit of %s, generation %s, was told twice", e.ID, d.Generation))
			}
			s.exits[d.Generation] = true
			delete(s.started, d.Generation)
			if d.ExitText == "exit 0" && w.killed[d.Generation] != "" {
				bad = append(bad, fmt.Sprintf("%s of %s was killed and counts as exit 0", w.killed[d.Generation], e.ID))
			}
		case e.What == team.EventTaskCompleted:
			if s.completions[e.ID] {
				bad = append(bad, fmt.Sprintf("task %s was completed twice", e.ID))
			}
			s.completions[e.ID] = true
		}
	}
	return bad
}

type stateData struct {
	Generation string `json:"generation"`
	ExitText   string `json:"exitText"`
}

func stateOf(e ledger.Event) (s stateData) {
	_ = json.Unmarshal(e.Data, &s)
	return s
}

// doubles finds members with two live generations. Two states read one after the other may never
// have existed at once: both must still be alive after both were seen.
func (w *world) doubles() (bad []string) {
	ps, err := w.processes()
	if err != nil {
		return []string{err.Error()}
	}
	first := map[string]process{}
	for _, p := range ps {
		if p.generation == "" || p.member == "" {
			continue
		}
		other, ok := first[p.member]
		if !ok {
			first[p.member] = p
			continue
		}
		if other.generation != p.generation && proc.Alive(other.id) && proc.Alive(p.id) {
			bad = append(bad, fmt.Sprintf("two generations of %s live: %s and %s", p.member, other, p))
		}
	}
	return bad
}

// mail counts the messages in a mailbox by id; nil for a file that is damaged.
func (w *world) mail(name string) map[string]int {
	n, _ := w.readMail(name)
	return n
}

func (w *world) readMail(name string) (map[string]int, error) {
	data, err := os.ReadFile(w.mailbox(name))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]int{}, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []struct {
		ID string `json:"msg_id"`
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("mailbox of %s: %w", name, err)
	}
	n := map[string]int{}
	for _, e := range entries {
		n[e.ID]++
	}
	return n, nil
}

// messages of the current run.
func (w *world) messages(ctx context.Context) ([]ledger.Message, error) {
	run, err := w.team.Ledger.CurrentRun(ctx)
	if err != nil {
		return nil, err
	}
	return w.team.Ledger.Messages(ctx, ledger.MessageFilter{Run: run.ID})
}

// pending lists what is not yet as it will be: members that are not up again,
// tasks that are not done, messages that have not arrived, litter of the dead.
func (w *world) pending(ctx context.Context) (not []string) {
	members, err := w.team.Ledger.Members(ctx, false)
	if err != nil {
		return []string{err.Error()}
	}
	live := map[string]bool{}
	for _, m := range members {
		live[m.Generation] = true
		a := w.plan(m.Name)
		switch {
		case m.Name == team.LeadName:
			continue
		case a == nil:
			not = append(not, fmt.Sprintf("%s is still on the roster", m.Name))
			continue
		}
		if a.steady {
			not = append(not, w.up(m)...)
		} else if a.name == "instant1" && m.Observed.Alive() {
			not = append(not, "instant1 is "+string(m.Observed))
		}
	}
	// The more expensive a check, the later it runs: frequent polls would keep the team from its work.
	for _, more := range []func() []string{
		func() []string { return w.strays(live) },
		func() []string { return w.unfinished(ctx) },
		func() []string { return w.undelivered(ctx) },
		func() []string { return w.ungiven(ctx) },
		func() []string { return w.untold(ctx) },
		func() []string { return w.litter(ctx) },
	} {
		if len(not) > 0 {
			return not
		}
		not = more()
	}
	return not
}

// up lists what a member that should be running lacks: the ledger, the bundle, the lock and the
// process must agree.
func (w *world) up(m ledger.Member) (not []string) {
	say := func(format string, args ...any) { not = append(not, m.Name+" "+fmt.Sprintf(format, args...)) }
	if m.Observed != team.Running {
		say("is %s (%s)", m.Observed, m.Reason)
		return not
	}
	b := w.team.Layout.Bundle(m.Name)
	pr, err := bundle.ReadProc(b, m.Generation)
	if err != nil {
		say("%v", err)
		return not
	}
	if !proc.Alive(pr.Agent) || pr.Agent.PID != m.PID {
		say("runs as %d in the ledger and as %d in its bundle, alive %v", m.PID, pr.Agent.PID, proc.Alive(pr.Agent))
	}
	if held, err := bundle.Running(b); err != nil || !held {
		say("runs, and its run.lock is free (%v)", err)
	}
	return not
}

// unfinished tasks. One may have failed only where a fault excuses it; then it is
// tried again.
func (w *world) unfinished(ctx context.Context) (not []string) {
	tasks, err := w.team.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return []string{err.Error()}
	}
	have := map[string]bool{}
	failed := false
	for _, t := range tasks {
		have[t.ID] = true
		if t.Status == team.TaskFailed {
			failed = true
			why := ""
			if t.Result != nil {
				why = t.Result.Error
			}
			not = append(not, fmt.Sprintf("task %s failed: %s", t.ID, why))
		} else if t.Status != team.TaskCompleted {
			not = append(not, fmt.Sprintf("task %s is %s, owner %s", t.ID, t.Status, t.OwnerName))
		}
	}
	_, added, _ := w.traffic.snapshot()
	for _, id := range added {
		if !have[id] {
			not = append(not, fmt.Sprintf("task %s was added and is not there", id))
		}
	}
	if failed && w.excused {
		if err := w.retryFailed(ctx); err != nil {
			not = append(not, err.Error())
		}
	}
	return not
}

func (w *world) retryFailed(ctx context.Context) error {
	tasks, err := w.team.Ledger.Tasks(ctx, ledger.TaskFilter{Status: team.TaskFailed})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		w.note("retry task %s", t.ID)
		if err := w.team.Ledger.RetryTask(ctx, t.ID); err != nil && !team.IsCode(err, team.CodeConflict) {
			return err
		}
	}
	return nil
}

// undelivered lists lost messages: every acknowledged message is in the ledger, is out of the
// outbox, was taken by a worker, and is in the mailbox of a member that does not read.
func (w *world) undelivered(ctx context.Context) (not []string) {
	posted, _, _ := w.traffic.snapshot()
	boxes := map[string]map[string]int{}
	for _, a := range w.members {
		n, err := w.readMail(a.name)
		if err != nil {
			not = append(not, err.Error())
		}
		boxes[a.name] = n
	}
	msgs, err := w.team.Ledger.Messages(ctx, ledger.MessageFilter{})
	if err != nil {
		return append(not, err.Error())
	}
	have := make(map[string]bool, len(msgs))
	for _, m := range msgs {
		have[m.ID] = true
	}
	for _, id := range posted {
		if !have[id] {
			not = append(not, fmt.Sprintf("message %s was acknowledged and is not in the ledger", id))
		}
	}
	members, err := w.team.Ledger.Members(ctx, false)
	if err != nil {
		return append(not, err.Error())
	}
	for _, m := range members {
		a := w.plan(m.Name)
		if a == nil {
			continue
		}
		all, err := w.team.Ledger.Mailbox(ctx, m.SessionKey, 0)
		if err != nil {
			return append(not, err.Error())
		}
		for _, o := range all {
			switch s := o.Delivery.State; {
			case s == team.Dropped && o.Message.Kind == team.KindShutdownRequest: // its generation ended before it answered
			case s == team.Posted || s == team.Held || s == team.Dropped:
				not = append(not, fmt.Sprintf("message %s to %s is %s (%s)", o.Message.ID, m.Name, s, o.Delivery.Reason))
			case s == team.Mailed && (a.worker() || a.model):
				not = append(not, fmt.Sprintf("message %s is in the mailbox of worker %s and was not read", o.Message.ID, m.Name))
			case s == team.Mailed && a.program == "" && boxes[m.Name][o.Message.ID] != 1:
				not = append(not, fmt.Sprintf("message %s was mailed to %s and stands %d times in its mailbox", o.Message.ID, m.Name, boxes[m.Name][o.Message.ID]))
			}
		}
	}
	return not
}

// strays are processes that belong to nothing that runs.
func (w *world) strays(live map[string]bool) (not []string) {
	ps, err := w.processes()
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range ps {
		if p.generation != "" && !live[p.generation] {
			not = append(not, "of no living generation: "+p.String())
		}
	}
	if n := len(with(ps, "supervise")); n > 1 {
		not = append(not, fmt.Sprintf("%d supervisors", n))
	}
	if servers := w.tmuxServers(ps); len(servers) > 1 {
		not = append(not, fmt.Sprintf("%d tmux servers: %v", len(servers), servers))
	}
	return append(not, w.zombies(ps)...)
}

// tempName matches what a killed writer leaves.
var tempName = regexp.MustCompile(`\.tmp$|\.tmp-|\.pid\.[0-9]+$|\.json\.lock`)

// litter returns the leftovers of killed processes: temporary files, and worktrees
// without a registration.
func (w *world) litter(ctx context.Context) (not []string) {
	_ = filepath.WalkDir(w.team.Layout.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away while we looked
		}
		if d.IsDir() && path == w.team.Layout.Worktrees() {
			return fs.SkipDir
		}
		// A recent file may belong to a live writer; it is swept later.
		if fi, err := d.Info(); err == nil && !d.IsDir() && tempName.MatchString(d.Name()) && time.Since(fi.ModTime()) > 2*time.Minute {
			not = append(not, "litter: "+path)
		}
		return nil
	})
	if out, err := w.git(ctx, "worktree", "prune", "-n", "-v"); err != nil || out != "" {
		not = append(not, fmt.Sprintf("git worktree prune -n: %v %s", err, strings.TrimSpace(out)))
	}
	return not
}

// settled makes the checks that are too expensive for every round, and checks what the team has
// open.
func (w *world) settled(ctx context.Context) (bad []string) {
	problems, err := w.team.Ledger.Check(ctx)
	if err != nil {
		bad = append(bad, "check the ledger: "+err.Error())
	}
	for _, p := range problems {
		bad = append(bad, "ledger: "+p)
	}
	bad = append(bad, w.exits(ctx)...)
	bad = append(bad, w.open()...)
	return bad
}

// exits: every generation that was started and does not live has its one exit.
func (w *world) exits(ctx context.Context) []string {
	bad := w.look(ctx)
	members, err := w.team.Ledger.Members(ctx, true)
	if err != nil {
		return append(bad, err.Error())
	}
	current := map[string]bool{}
	for _, m := range members {
		current[m.Generation] = true
	}
	for g, name := range w.seen.started {
		if !current[g] {
			bad = append(bad, fmt.Sprintf("generation %s of %s was started and its exit never told", g, name))
		}
	}
	return bad
}

// open compares descriptors with what they were.
func (w *world) open() (bad []string) {
	now := baseline{}
	if id, ok := w.supervisor(); ok {
		now.sup, now.supPTYs = descriptors(id.PID)
	}
	if id, ok := w.tmuxServer(); ok {
		_, now.tmuxPTYs = descriptors(id.PID)
	}
	if w.base == (baseline{}) {
		w.base = now
		return nil
	}
	say := func(what string, n, was, more int) {
		if n > was+more {
			bad = append(bad, fmt.Sprintf("%s: %d, at first %d", what, n, was))
		}
	}
	// A worker that lives in the supervisor opens readers of the ledger as it needs them.
	inside := 0
	for _, a := range w.members {
		if !a.process() {
			inside++
		}
	}
	say("descriptors of the supervisor", now.sup, w.base.sup, allowance+inside*12)
	say("terminals of the supervisor", now.supPTYs, w.base.supPTYs, 0)
	say("terminals of the tmux server", now.tmuxPTYs, w.base.tmuxPTYs, allowance/4)
	return bad
}

// treeless is a team's directory without what is large.
type treeless struct{ fs.FS }

func skipTrees(f fs.FS) fs.FS { return treeless{f} }

func (t treeless) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(t.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return name == "." && e.Name() == "worktrees" || !e.IsDir() && !e.Type().IsRegular()
	}), err
}
