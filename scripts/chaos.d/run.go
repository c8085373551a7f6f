package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// violation is a promise that was not kept.
type violation struct{ what []string }

func (v violation) Error() string { return strings.Join(v.what, "\n") }

// run does the rounds.
func (w *world) run(ctx context.Context) error {
	w.traffic = newTraffic(w)
	if err := w.settle(ctx); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	w.traffic.start(ctx)
	defer w.traffic.stop()
	began := time.Now()
	for w.round = 1; w.round <= w.opt.rounds; w.round++ {
		if w.opt.span > 0 && time.Since(began) > w.opt.span {
			w.opt.rounds = w.round // the last one
		}
		w.traffic.next()
		if err := w.fault(ctx); err != nil {
			return err
		}
		if err := w.quick(); err != nil {
			return err
		}
		if w.round%w.opt.settle == 0 || w.round == w.opt.rounds {
			w.traffic.stop()
			if err := w.settle(ctx); err != nil {
				return err
			}
			w.traffic.start(ctx)
		}
	}
	return nil
}

// fault does one possible fault.
func (w *world) fault(ctx context.Context) error {
	for range 50 {
		f := w.choose()
		began := time.Now()
		err := f.do(ctx, w) // bounds itself
		if ctx.Err() != nil {
			return fmt.Errorf("ended in round %d: %w", w.round, context.Cause(ctx))
		}
		if errors.Is(err, errSkip) {
			if _, told := w.skipped[f.name]; !told {
				w.skipped[f.name] = ""
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		delete(w.skipped, f.name)
		w.counts[f.name]++
		if took := time.Since(began); took > w.slowest {
			w.slowest, w.slowName = took, f.name
		}
		// Let it work a little: faults that fall on a team that recovers find most.
		w.pause(ctx, 250*time.Millisecond)
		return nil
	}
	return nil
}

// settle brings all members up again and checks everything.
func (w *world) settle(ctx context.Context) error {
	began := time.Now()
	w.behind.Wait()
	w.mu.Lock()
	late := errors.Join(w.late...)
	w.mu.Unlock()
	if late != nil {
		return late
	}
	if err := w.mend(ctx); err != nil {
		return err
	}
	var last []string
	ok := every(ctx, 60*time.Millisecond, 15*time.Minute, func() bool {
		if hard := w.never(ctx); len(hard) > 0 {
			last = hard
			return true
		}
		last = w.pending(ctx)
		return len(last) == 0
	})
	if ctx.Err() != nil {
		return fmt.Errorf("ended while the team settled: %w", context.Cause(ctx))
	}
	if len(last) > 0 || !ok {
		return violation{last}
	}
	if bad := w.settled(ctx); len(bad) > 0 {
		return violation{bad}
	}
	w.excused = false
	clear(w.hurt)
	w.note("settled in %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// mend repairs what does not recover by itself: members that gave up or were told to stop are
// started, damaged mailboxes get a message, members that a fault spawned leave, and a run close to
// its limit of messages is followed by a new one.
func (w *world) mend(ctx context.Context) error {
	c, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	sup, err := w.env.Dial(c, w.team.Layout, true)
	if err != nil {
		return fmt.Errorf("bring the supervisor back: %w", err)
	}
	members, err := w.team.Ledger.Members(c, false)
	if err != nil {
		return err
	}
	var start, remove []string
	for _, m := range members {
		if w.temps[m.Name] {
			remove = append(remove, m.Name)
			continue
		}
		a := w.plan(m.Name)
		if a == nil {
			continue
		}
		down := m.Desired != team.WantRunning || m.Observed.Terminal()
		// Half of those in back-off are left to it.
		if down || a.steady && m.Observed == team.Backoff && (m.Failures > 2 || w.rand.IntN(2) == 0) {
			start = append(start, m.Name)
		}
	}
	if err := w.thaw(c); err != nil {
		return err
	}
	if w.rand.IntN(3) > 0 { // else a supervisor's tick or a claim does it
		if _, err := w.team.Ledger.ExpireLeases(c); err != nil {
			return err
		}
	}
	if len(remove) > 0 {
		if _, err := sup.StopMembers(c, team.StopRequest{Names: remove, Force: true, Remove: true}); err != nil {
			return fmt.Errorf("remove %v: %w", remove, err)
		}
	}
	if len(start) > 0 {
		if _, err := sup.StartMembers(c, start); err != nil {
			w.note("start of %v: %v", start, err) // some crash at once; the checks report the others
		}
	}
	msgs, err := w.messages(c)
	if err != nil {
		return err
	}
	if len(msgs) > team.MaxMessagesPerRun/3 {
		if _, err := w.team.Ledger.StartRun(c); err != nil {
			return err
		}
	}
	for name := range w.hurt {
		if err := w.traffic.send(c, name); err != nil {
			return fmt.Errorf("send to %s, whose mailbox was damaged: %w", name, err)
		}
		// An append checks only the end of a mailbox; a reader checks the rest.
		if _, err := w.team.Inbox(c, name, false); err != nil {
			return fmt.Errorf("read the damaged mailbox of %s: %w", name, err)
		}
	}
	if err := w.wake(c); err != nil {
		return err
	}
	if w.excused {
		return w.retryFailed(c)
	}
	return nil
}

func (w *world) plan(name string) *agentPlan {
	i := slices.IndexFunc(w.members, func(a *agentPlan) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return w.members[i]
}

func sortPlans(as []*agentPlan) {
	slices.SortFunc(as, func(a, b *agentPlan) int { return strings.Compare(a.name, b.name) })
}

// end stops the team as a person would and checks that nothing is left.
func (w *world) end(ctx context.Context) error {
	c, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	w.note("shutdown")
	if out, err := w.cli(c, "shutdown"); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	ps, err := w.processes()
	if err != nil {
		return err
	}
	var bad []string
	for _, p := range ps {
		if p.generation != "" {
			bad = append(bad, "lives after the shutdown: "+p.String())
		}
	}
	w.note("delete")
	// The killed tasks left files that were never committed: without --force they stay.
	if out, err := w.cli(c, "delete", "--force"); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := w.team.Close(); err != nil {
		return err
	}
	if !until(c, 5*time.Minute, func() bool { ps, err = w.processes(); return err == nil && len(ps) == 0 }) {
		for _, p := range ps {
			bad = append(bad, "left behind: "+p.String())
		}
	}
	bad = append(bad, w.left(c)...)
	if len(bad) > 0 {
		return violation{bad}
	}
	return nil
}

// left looks for files and registrations that outlive the team.
func (w *world) left(ctx context.Context) (bad []string) {
	out, err := w.git(ctx, "worktree", "list", "--porcelain")
	if n := strings.Count(out, "worktree "); err != nil || n != 1 {
		bad = append(bad, fmt.Sprintf("worktrees registered after delete: %d (%v)\n%s", n, err, out))
	}
	if out, err := w.git(ctx, "worktree", "prune", "-n", "-v"); err != nil || out != "" {
		bad = append(bad, fmt.Sprintf("git worktree prune -n: %v\n%s", err, out))
	}
	if out, err := w.git(ctx, "fsck", "--no-dangling", "--no-progress"); err != nil {
		bad = append(bad, fmt.Sprintf("git fsck: %v\n%s", err, out))
	}
	if out, err := w.git(ctx, "status", "--porcelain"); err != nil || out != "" {
		bad = append(bad, fmt.Sprintf("the person's checkout was changed: %v\n%s", err, out))
	}
	for _, dir := range []string{w.env.Home.TeamsDir(), filepath.Join(w.dir, "r"), filepath.Join(w.dir, "tmp"), filepath.Join(w.dir, "home")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			bad = append(bad, err.Error())
		}
		for _, e := range entries {
			bad = append(bad, "file left behind: "+filepath.Join(dir, e.Name()))
		}
	}
	return bad
}

// remove takes the directory away.
func (w *world) remove() error {
	if w.given.model != nil {
		if err := w.given.model.Close(); err != nil {
			return err
		}
	}
	if w.opt.keep {
		fmt.Println("chaos: kept", w.dir)
		return nil
	}
	if w.disk != nil {
		if err := w.disk.remove(); err != nil {
			return err
		}
	}
	return os.RemoveAll(w.dir)
}

// report prints what failed, keeps the state, and ends the processes.
func (w *world) report(err error) {
	if w.traffic != nil {
		w.traffic.stop()
	}
	fmt.Printf("\nchaos: FAILED in round %d, seed %d\n%v\n\nthe last faults:\n", w.round, w.opt.seed, err)
	for _, l := range w.done[max(0, len(w.done)-15):] {
		fmt.Println(" ", l)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	state := filepath.Join(w.dir, "state")
	_ = os.MkdirAll(state, 0o700)
	write := func(name, text string) { _ = os.WriteFile(filepath.Join(state, name), []byte(text), 0o600) }
	write("faults", strings.Join(w.done, "\n")+"\n")
	write("error", err.Error()+"\n")
	ps, _ := w.processes()
	var lines []string
	for _, p := range ps {
		lines = append(lines, fmt.Sprintf("%s member=%s generation=%s", p, p.member, p.generation))
	}
	write("processes", strings.Join(lines, "\n")+"\n")
	if w.team != nil {
		out, err := w.cli(ctx, "ps", "-o", "wide")
		write("ps", fmt.Sprint(out, err))
		out, err = w.cli(ctx, "events", "--json")
		write("events", fmt.Sprint(out, err))
		fmt.Println("\nthe team:")
		if out, err := w.cli(ctx, "ps", "-o", "wide"); err == nil {
			fmt.Println(out)
		}
		// The file system goes with this process: what is worth a look is copied.
		_ = os.CopyFS(filepath.Join(state, "team"), skipTrees(os.DirFS(w.team.Layout.Dir)))
	}
	for _, p := range ps {
		_ = w.signal(p.id, syscall.SIGKILL)
	}
	until(ctx, 5*time.Second, func() bool {
		ps, err := w.processes()
		for _, p := range ps {
			_ = proc.Signal(p.id, syscall.SIGKILL)
		}
		return err == nil && len(ps) == 0
	})
	if w.disk != nil {
		_ = w.disk.remove()
	}
	fmt.Println("chaos: look at", state, "and run it again with --seed", w.opt.seed)
}

// total returns the number of faults done.
func (w *world) total() (n int) {
	for _, c := range w.counts {
		n += c
	}
	return n
}

// summary of a run without a violation.
func (w *world) summary(took time.Duration) {
	posted, tasks, _ := w.traffic.snapshot()
	fmt.Printf("chaos: ok: %d rounds in %s, %d messages delivered once (%d refused), %d receipts true, %d tasks completed once; slowest fault %s %s\n",
		w.total(), took.Round(time.Second/10), len(posted), w.traffic.refused, len(w.given.whole), len(tasks), w.slowName, w.slowest.Round(time.Millisecond))
	var parts []string
	for _, f := range faults {
		if n := w.counts[f.name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", f.name, n))
		}
	}
	fmt.Println("chaos: faults:", strings.Join(parts, ", "))
	for name, why := range w.skipped {
		if why != "" {
			fmt.Printf("chaos: skipped %s: %s\n", name, why)
		}
	}
}
