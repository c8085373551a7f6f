package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// fault is one thing that can be done to a team. do returns when it is done, not
// when the team is well again. Its error is a violation, but for errSkip.
type fault struct {
	name, what string
	weight     int
	do         func(context.Context, *world) error
}

// errSkip means that the fault is not possible here or now.
var errSkip = errors.New("nothing to do it to")

var faults = []fault{
	{"kill-supervisor", "SIGKILL to the supervisor", 12, killSupervisor},
	{"kill-agent", "SIGKILL to one agent", 10, killAgent},
	{"kill-agents", "SIGKILL to four agents at once", 3, killAgents},
	{"kill-shim", "SIGKILL to the shim of an agent", 10, killShim},
	{"kill-shim-and-sup", "SIGKILL to a shim and to the supervisor", 4, killShimAndSupervisor},
	{"kill-tmux", "SIGKILL to the tmux server", 3, killTmux},
	{"kill-pane", "a person kills a pane", 5, killPane},
	{"kill-sender", "SIGKILL to a sender amid its sending", 10, killSender},
	{"kill-claimer", "SIGKILL to a claimer that holds a lease", 4, killClaimer},
	{"kill-mid-restart", "SIGKILL to the supervisor while it restarts members", 6, killMidRestart},
	{"kill-mid-spawn", "SIGKILL to the supervisor while it spawns a member", 5, killMidSpawn},
	{"two-supervisors", "several commands start the supervisor at once", 4, twoSupervisors},
	{"contradict", "stop, restart and start of one member at once", 6, contradict},
	{"stop-stubborn", "stop and start of a member that ignores SIGTERM", 1, stopStubborn},
	{"delete-socket", "the supervisor's socket is deleted", 4, deleteSocket},
	{"delete-tmux-socket", "the tmux server's socket is deleted", 4, deleteTmuxSocket},
	{"delete-worktree", "a worker's worktree is deleted", 3, deleteWorktree},
	{"delete-mailbox", "a mailbox is deleted", 5, deleteMailbox},
	{"damage-mailbox", "a mailbox is cut, emptied or overwritten", 6, damageMailbox},
	{"fill-disk", "no space is left for a while", 3, fillDisk},
	{"pause-member", "members are paused, often with the supervisor killed meanwhile", 4, pauseMember},
	{"move-clock", "the supervisor's wall clock jumps a day", 3, moveClock},
	{"freeze-agent", "SIGSTOP to an agent, SIGCONT later", 3, freezeAgent},
	{"freeze-supervisor", "SIGSTOP to the supervisor, SIGCONT later", 4, freezeSupervisor},
	{"freeze-tmux", "SIGSTOP to the tmux server, SIGCONT later", 3, freezeTmux},
}

// choose picks a fault by weight.
func (w *world) choose() fault {
	list := faults
	if w.opt.only != "" {
		names := strings.Split(w.opt.only, ",")
		list = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	total := 0
	for _, f := range list {
		total += f.weight
	}
	n := w.rand.IntN(max(total, 1))
	for _, f := range list {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	return fault{name: "none", do: func(context.Context, *world) error { return errSkip }}
}

// pick is a random member that ok accepts.
func (w *world) pick(ok func(*agentPlan) bool) (*agentPlan, bool) {
	var list []*agentPlan
	for _, a := range w.members {
		if ok == nil || ok(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[w.rand.IntN(len(list))], true
}

func killSupervisor(ctx context.Context, w *world) error {
	id, ok := w.supervisor()
	if !ok {
		return errSkip
	}
	return w.kill(ctx, id, "supervisor")
}

// kill ends one of our processes and waits for its death.
func (w *world) kill(ctx context.Context, id backends.ProcID, what string) error {
	w.note("SIGKILL to %s %d", what, id.PID)
	if err := w.signal(id, syscall.SIGKILL); err != nil {
		if errors.Is(err, proc.ErrGone) {
			return errSkip
		}
		return err
	}
	if !gone(ctx, id) {
		return fmt.Errorf("%s %d survives SIGKILL", what, id.PID)
	}
	return nil
}

func killAgent(ctx context.Context, w *world) error {
	a, _ := w.pick((*agentPlan).process)
	pr, err := w.facts(a.name)
	if err != nil || !proc.Alive(pr.Agent) {
		return errSkip
	}
	w.killed[pr.Generation] = "agent"
	return w.kill(ctx, pr.Agent, "agent "+a.name)
}

func killAgents(ctx context.Context, w *world) error {
	n := 0
	for _, i := range w.rand.Perm(len(w.members)) {
		a := w.members[i]
		if pr, err := w.facts(a.name); err == nil && n < 4 && a.process() && w.ours(pr.Agent) {
			n++
			w.killed[pr.Generation] = "agent"
			w.note("SIGKILL to agent %s %d", a.name, pr.Agent.PID)
			if err := w.signal(pr.Agent, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
				return err
			}
		}
	}
	return nil
}

func killShim(ctx context.Context, w *world) error {
	a, _ := w.pick((*agentPlan).process)
	pr, err := w.facts(a.name)
	if err != nil || !proc.Alive(pr.Shim) {
		return errSkip
	}
	w.killed[pr.Generation] = "shim"
	return w.kill(ctx, pr.Shim, "shim of "+a.name)
}

func killShimAndSupervisor(ctx context.Context, w *world) error {
	if w.rand.IntN(2) == 0 {
		return errors.Join(unskip(killShim(ctx, w)), unskip(killSupervisor(ctx, w)))
	}
	return errors.Join(unskip(killSupervisor(ctx, w)), unskip(killShim(ctx, w)))
}

func unskip(err error) error {
	if errors.Is(err, errSkip) {
		return nil
	}
	return err
}

func killTmux(ctx context.Context, w *world) error {
	id, ok := w.tmuxServer()
	if !ok {
		return errSkip
	}
	return w.kill(ctx, id, "tmux server")
}

func killPane(ctx context.Context, w *world) error {
	a, _ := w.pick(nil)
	m, err := w.team.Ledger.Member(ctx, a.name)
	if err != nil {
		return err
	}
	if m.Observed != team.Running || !strings.HasPrefix(m.PaneID, "%") {
		return errSkip
	}
	if _, ok := w.tmuxServer(); !ok {
		return errSkip
	}
	w.note("kill-pane %s of %s", m.PaneID, a.name)
	if _, err := w.tmux(ctx, "kill-pane", "-t", m.PaneID); err != nil {
		return errSkip // the pane or the server went away by itself
	}
	return nil
}

// killSender: every message that the sender was told is posted must arrive, exactly once.
func killSender(ctx context.Context, w *world) error {
	args := []string{"sender", w.opt.teamctl, fmt.Sprint(w.rand.IntN(60_000))}
	for range 3 {
		a, _ := w.pick(nil)
		args = append(args, a.name)
	}
	w.note("SIGKILL to a sender to %s", strings.Join(args[3:], ", "))
	v, err := w.startVictim(args...)
	if err != nil {
		return err
	}
	var said []string
	for range 1 + w.rand.IntN(4) {
		line, ok := v.next(ctx)
		if !ok {
			break
		}
		said = append(said, line)
	}
	w.pause(ctx, 8*time.Millisecond)
	said = append(said, v.kill()...)
	for _, line := range said {
		id, ok := strings.CutPrefix(line, "posted ")
		if !ok {
			if strings.Contains(line, "messages") { // the cap
				continue
			}
			return fmt.Errorf("sender: %s", line)
		}
		w.traffic.acknowledged(id)
	}
	return nil
}

func killClaimer(ctx context.Context, w *world) error {
	w.traffic.task(ctx) // there is something to claim
	w.note("SIGKILL to a claimer")
	v, err := w.startVictim("claimer", w.opt.teamctl, team.TeammateSessionKey("claimer"))
	if err != nil {
		return err
	}
	line, _ := v.next(ctx)
	v.kill()
	if strings.HasPrefix(line, "error") {
		return fmt.Errorf("claimer: %s", line)
	}
	w.note("claimer: %s", line)
	return nil
}

// killMidRestart kills the supervisor while several members are being restarted.
func killMidRestart(ctx context.Context, w *world) error {
	var names []string
	for range 1 + w.rand.IntN(4) {
		if a, ok := w.pick(func(a *agentPlan) bool { return a.steady && !a.slow && !slices.Contains(names, a.name) }); ok {
			names = append(names, a.name)
		}
	}
	w.note("restart of %s, SIGKILL to the supervisor meanwhile", strings.Join(names, ", "))
	return killAmid(ctx, w, "restart", 250*time.Millisecond, func() { _, _ = w.team.Restart(ctx, tool.Person(), names) })
}

// killAmid kills the supervisor at a random moment, at most within after a request has
// begun. The request may succeed or fail, but it must return.
func killAmid(ctx context.Context, w *world, what string, within time.Duration, request func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		request()
	}()
	w.pause(ctx, within)
	err := unskip(killSupervisor(ctx, w))
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("%s has no answer although its supervisor was killed", what)
	}
	return err
}

// killMidSpawn kills the supervisor while it spawns, and removes the member again
// if there is one.
func killMidSpawn(ctx context.Context, w *world) error {
	name := fmt.Sprintf("temp%d", w.round)
	w.note("spawn of %s, SIGKILL to the supervisor meanwhile", name)
	w.temps[name] = true
	n := w.rand.IntN(len(w.opt.backends))
	in := tool.SpawnIn{
		Name: name, Exact: true, MemberSpec: team.MemberSpec{
			Backend: w.backendFor(agentKind{}, &n), Agent: "command", Command: []string{w.self, "agent", "idle"},
		},
	}
	return killAmid(ctx, w, "spawn", 200*time.Millisecond, func() { _, _ = w.team.Spawn(ctx, tool.Person(), in) })
}

// twoSupervisors lets several commands find none at once.
func twoSupervisors(ctx context.Context, w *world) error {
	if err := unskip(killSupervisor(ctx, w)); err != nil {
		return err
	}
	w.note("four commands at once")
	// A supervisor that wins stays until it is killed: a fault of its own.
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, 2)
	var asked, others sync.WaitGroup
	for i := range errs {
		asked.Go(func() { _, errs[i] = w.cli(ctx, "ps") })
		others.Go(func() { _, _ = w.cli(c, "supervise", "--team", teamName) })
	}
	asked.Wait()
	w.pause(ctx, 100*time.Millisecond)
	cancel()
	others.Wait()
	return errors.Join(errs...)
}

// contradict gives orders to one member that cannot all be carried out.
func contradict(ctx context.Context, w *world) error {
	a, _ := w.pick(func(a *agentPlan) bool { return a.steady && !a.slow })
	w.note("stop, restart, start, stop, start of %s at once", a.name)
	return w.orders(ctx, a.name, []string{"stop", "restart", "start", "stop", "start"})
}

// orders gives every order from a caller of its own; each must get an answer.
func (w *world) orders(ctx context.Context, name string, orders []string) error {
	errs := make(chan error, len(orders))
	for _, o := range orders {
		go func() {
			var err error
			switch o {
			case "stop":
				_, err = w.team.Stop(ctx, tool.Person(), team.StopRequest{Names: []string{name}})
			case "kill":
				_, err = w.team.Stop(ctx, tool.Person(), team.StopRequest{Names: []string{name}, Force: true})
			case "restart":
				_, err = w.team.Restart(ctx, tool.Person(), []string{name})
			case "start":
				_, err = w.team.Start(ctx, tool.Person(), []string{name})
			}
			if team.ReasonOf(err) == "superseded" || team.IsCode(err, team.CodeConflict) {
				err = nil // another order came after it, as the error says
			}
			if err != nil {
				err = fmt.Errorf("%s %s: %w", o, name, err)
			}
			errs <- err
		}()
	}
	var all []error
	limit := time.After(10 * time.Minute)
	for range orders {
		select {
		case err := <-errs:
			all = append(all, err)
		case <-limit:
			return fmt.Errorf("an order to %s has no answer: %v", name, orders)
		}
	}
	return errors.Join(all...)
}

func stopStubborn(ctx context.Context, w *world) error {
	a, ok := w.pick(func(a *agentPlan) bool { return a.slow })
	if !ok {
		return errSkip
	}
	m, err := w.team.Ledger.Member(ctx, a.name)
	if err != nil {
		return err
	}
	if m.Observed != team.Running {
		return errSkip
	}
	w.note("stop of %s, which ignores SIGTERM", a.name)
	w.mu.Lock()
	before := len(w.done)
	w.mu.Unlock()
	w.meanwhile(func() error { // it takes ten seconds, while other faults happen
		began := time.Now()
		out, err := w.team.Stop(ctx, tool.Person(), team.StopRequest{Names: []string{a.name}})
		if supervisor.IsStopped(err) {
			return nil // its supervisor was killed; the next one continues it
		}
		if err != nil {
			return fmt.Errorf("stop %s: %w", a.name, err)
		}
		// The grace and a busy machine. A supervisor that takes over begins the grace anew.
		limit := 200 * time.Second * time.Duration(1+w.supervisorsKilled(before))
		if took := time.Since(began); took > limit {
			return fmt.Errorf("stop of %s took %s: %+v", a.name, took, out)
		}
		return nil
	})
	return nil
}

// supervisorsKilled counts the supervisors that were killed by what was done after the first n.
func (w *world) supervisorsKilled(n int) (killed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.done[n:] {
		if strings.Contains(d, "SIGKILL to supervisor") || strings.Contains(d, "SIGKILL to the supervisor") {
			killed++
		}
	}
	return killed
}

// meanwhile runs a function while other faults happen; the next settling waits for it.
func (w *world) meanwhile(f func() error) {
	w.behind.Go(func() {
		if err := f(); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.late = append(w.late, err)
		}
	})
}

// tmux runs one command on the private server.
func (w *world) tmux(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"tmux", "-S", w.team.Layout.TmuxSocket()}, args...)...)
}

// freeze stops a process for a while, calls a function, and thaws the process.
func (w *world) freeze(ctx context.Context, id backends.ProcID, what string, meanwhile func()) error {
	w.note("SIGSTOP to %s %d", what, id.PID)
	if err := w.signal(id, syscall.SIGSTOP); err != nil {
		return errSkip
	}
	defer func() {
		if err := w.signal(id, syscall.SIGCONT); err == nil {
			w.note("SIGCONT to %s", what)
		}
	}()
	meanwhile()
	w.pause(ctx, 300*time.Millisecond)
	return nil
}

func freezeAgent(ctx context.Context, w *world) error {
	a, _ := w.pick((*agentPlan).process)
	pr, err := w.facts(a.name)
	if err != nil {
		return errSkip
	}
	id, what := pr.Agent, "agent "
	if w.rand.IntN(2) == 0 {
		id, what = pr.Shim, "shim of "
	}
	return w.freeze(ctx, id, what+a.name, func() {})
}

// freezeSupervisor: no write may be lost or done twice.
func freezeSupervisor(ctx context.Context, w *world) error {
	id, ok := w.supervisor()
	if !ok {
		return errSkip
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	return w.freeze(ctx, id, "supervisor", func() {
		wg.Go(func() { w.traffic.task(ctx) })
		wg.Go(func() { w.traffic.task(ctx) })
	})
}

func freezeTmux(ctx context.Context, w *world) error {
	id, ok := w.tmuxServer()
	if !ok {
		return errSkip
	}
	a, _ := w.pick(func(a *agentPlan) bool { return a.steady && !a.slow && a.backend == "tmux" })
	if a == nil {
		return errSkip
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	return w.freeze(ctx, id, "tmux server", func() {
		wg.Go(func() { _, _ = w.team.Restart(ctx, tool.Person(), []string{a.name}) })
	})
}

func deleteSocket(_ context.Context, w *world) error {
	w.note("delete %s", w.team.Layout.Socket())
	return skipMissing(os.Remove(w.team.Layout.Socket()))
}

func deleteTmuxSocket(_ context.Context, w *world) error {
	w.note("delete %s", w.team.Layout.TmuxSocket())
	return skipMissing(os.Remove(w.team.Layout.TmuxSocket()))
}

func skipMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errSkip
	}
	return err
}
