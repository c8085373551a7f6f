package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// agentKind is a sort of member.
type agentKind struct {
	name    string
	share   int    // of twenty
	program string // the CLI that it imitates
	args    []string
	model   bool // a model leads it: the built-in one that follows a script
	restart string
	// steady: it runs whenever it is wanted. Others come and go by themselves.
	steady bool
	slow   bool // takes the whole grace to stop
	// goroutine: it can live in the supervisor.
	goroutine bool
	limits    team.Limits
}

// bombs is the maximum number of processes that a bomber starts, limited or not.
const bombs = 24

// kinds make a team of twenty. A worker is teamctl's own.
var kinds = []agentKind{
	{name: "worker", share: 6, steady: true, goroutine: true},
	{name: "thinker", share: 2, model: true, steady: true, goroutine: true},
	{name: "idle", share: 2, args: []string{"idle"}, steady: true},
	{name: "chatty", share: 2, args: []string{"chatty"}, steady: true},
	{name: "forker", share: 2, args: []string{"forker"}, steady: true},
	{name: "stubborn", share: 2, args: []string{"stubborn"}, steady: true, slow: true},
	{name: "crasher", share: 1, args: []string{"crasher"}},
	{name: "bomber", share: 1, args: []string{"bomber"}, steady: true, limits: team.Limits{PIDs: bombs}},
	{name: "eater", share: 1, args: []string{"eater"}, restart: "never", limits: team.Limits{MemoryBytes: 192 << 20}},
	{name: "instant", share: 1, args: []string{"exit", "7"}, restart: "never"},
}

// agentPlan is one member as it was asked for.
type agentPlan struct {
	agentKind
	name    string // of the member
	backend string
}

func (a *agentPlan) worker() bool { return a.args == nil && a.program == "" && !a.model }

// populate spawns the team, all kinds at once.
func (w *world) populate(ctx context.Context) error {
	type result struct {
		plans []*agentPlan
		err   error
	}
	var asked int
	results := make(chan result)
	n := 0
	for _, k := range slices.Concat(kinds, standInKinds(w.opt.programs)) {
		count := max(1, k.share*w.opt.agents/20)
		for i := range count {
			a := &agentPlan{agentKind: k, name: k.name + strconv.Itoa(i+1), backend: w.backendFor(k, &n)}
			asked++
			go func() {
				_, err := w.team.Spawn(ctx, tool.Person(), w.spawnIn(a))
				results <- result{[]*agentPlan{a}, err}
			}()
		}
	}
	var first error
	for range asked {
		r := <-results
		if r.err != nil && first == nil {
			first = fmt.Errorf("spawn: %w", r.err)
		}
		w.members = append(w.members, r.plans...)
	}
	sortPlans(w.members) // the order of the answers must not change the choices
	return first
}

// backendFor is the turn of the next member, past what cannot run it.
func (w *world) backendFor(k agentKind, n *int) string {
	for range w.opt.backends {
		b := w.opt.backends[*n%len(w.opt.backends)]
		*n++
		if b != inproc.Name || k.goroutine {
			return b
		}
	}
	return "auto"
}

// process reports whether the member has a process of its own.
func (a *agentPlan) process() bool { return a.backend != inproc.Name }

func (w *world) spawnIn(a *agentPlan) tool.SpawnIn {
	in := tool.SpawnIn{Name: a.name, Exact: true, MemberSpec: team.MemberSpec{Backend: a.backend, Restart: team.RestartPolicy(a.restart), Limits: a.limits}}
	switch {
	case a.model:
		in.Agent, in.Mode, in.Bypass = team.AgentLLM, team.ModeBypass, true
	case a.program != "":
		in.Agent, in.WorktreeMode, in.Cwd, in.Prompt = a.program, "none", w.dir, "@@say here"
	case !a.worker():
		in.Agent, in.Command, in.WorktreeMode, in.Cwd = "command", append([]string{w.self, "agent"}, a.args...), "none", w.dir
	}
	return in
}

// agent is a foreign agent with one habit each.
func agent(args []string) int {
	if len(args) == 0 {
		return 64
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	switch args[0] {
	case "idle":
		fmt.Println("waiting")
		<-term
		return 0
	case "chatty":
		tick := time.NewTicker(40 * time.Millisecond)
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				fmt.Printf("%d the quick brown fox jumps over the lazy dog\n", i)
			case <-term:
				return 0
			}
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		select {}
	case "forker":
		// Children in sessions of their own that take no hint, one of them orphaned.
		for _, script := range []string{
			`trap "" TERM HUP; while :; do read -t 60 < <(tail -f /dev/null); done`,
			`trap "" TERM HUP; (trap "" TERM HUP; exec tail -f /dev/null) & exit 0`,
		} {
			cmd := exec.Command("bash", "-c", script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				fmt.Println(err)
				return 1
			}
			go func() { _ = cmd.Wait() }()
		}
		fmt.Println("forked")
		<-term
		return 0
	case "crasher":
		_ = pause.For(context.Background(), time.Duration(500+os.Getpid()%4000)*time.Millisecond)
		return 3
	case "bomber":
		n := 0
		for range bombs {
			cmd := exec.Command("tail", "-f", "/dev/null")
			if err := cmd.Start(); err != nil {
				fmt.Println("no more than", n, "processes:", err)
				break
			}
			n++
			go func() { _ = cmd.Wait() }()
		}
		fmt.Println("started", n)
		<-term
		return 0
	case "eater":
		var eaten [][]byte
		for range 40 { // 320 MiB; a limit ends it before
			b := make([]byte, 8<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			eaten = append(eaten, b)
		}
		fmt.Println("ate", len(eaten))
		return 9
	case "exit":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return 64
		}
		return n
	}
	return 64
}
