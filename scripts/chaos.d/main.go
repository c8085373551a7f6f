// Command chaos runs a team of twenty fake agents and does one random fault after
// the other to it: it kills supervisors, shims, agents, tmux servers and writers,
// deletes and damages files, fills the disk, freezes processes, and gives orders
// that contradict each other, while messages are posted and tasks are added all
// along. After every round it checks that nothing was doubled, and every few
// rounds it lets the team settle and checks that nothing was lost, that no receipt is
// false, and that nothing is left over. Run it through scripts/chaos.
//
// It works in a directory of its own with a program built for it, signals only
// processes that have this directory in their environment, and leaves nothing
// behind unless a check fails: then it prints the seed, the last faults and the
// violations, and the directory stays to be looked at.
//
// The rest of this package are the parts that are killed: agents, senders and
// claimers are this same program under another verb.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/fakecli"
)

// options of a run.
type options struct {
	teamctl  string
	rounds   int
	seed     uint64
	agents   int
	backends []string
	programs []string      // agent CLIs, of each of which a stand-in is a member
	settle   int           // rounds between two full checks
	limit    time.Duration // of the whole run
	span     time.Duration // no fault after so long; 0: all rounds are done
	only     string        // faults to choose from
	keep     bool
	verbose  bool
}

func main() {
	if status, ok := fakecli.Main(os.Args); ok {
		os.Exit(status)
	}
	if len(os.Args) > 1 {
		if verb, ok := verbs[os.Args[1]]; ok {
			os.Exit(verb(os.Args[2:]))
		}
	}
	opt, err := parse()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: error:", err)
		os.Exit(2)
	}
	if status, ran := inside(); ran {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(chaos(ctx, opt))
}

func parse() (options, error) {
	var opt options
	var names, programs string
	flag.StringVar(&opt.teamctl, "teamctl", "", "the program to torture (scripts/chaos builds it)")
	flag.IntVar(&opt.rounds, "rounds", 200, "faults to do")
	flag.Uint64Var(&opt.seed, "seed", 0, "seed of the choices; 0: a new one")
	flag.IntVar(&opt.agents, "agents", 20, "members of the team, at least 8")
	flag.StringVar(&names, "backends", "tmux,tmux,pty,in-process", "comma separated, as often as they are to be used; in-process is for workers only")
	flag.StringVar(&programs, "programs", strings.Join(programNames(), ","), "comma separated agent CLIs, a stand-in of each is a member as well; \"\": none")
	flag.IntVar(&opt.settle, "settle", 25, "rounds between two full checks")
	flag.DurationVar(&opt.limit, "limit", 0, "most time to take; 0: 20 seconds a round and 20 minutes")
	flag.DurationVar(&opt.span, "for", 0, "begin no round after so long, and end well with those that were done")
	flag.StringVar(&opt.only, "only", "", "comma separated faults to choose from; \"list\" lists them")
	flag.BoolVar(&opt.keep, "keep", false, "leave the directory also when all went well")
	flag.BoolVar(&opt.verbose, "v", false, "a line for every round")
	flag.Parse()
	if opt.only == "list" {
		for _, f := range faults {
			fmt.Printf("%-22s %s\n", f.name, f.what)
		}
		os.Exit(0)
	}
	opt.backends = strings.Split(names, ",")
	if programs != "" {
		opt.programs = strings.Split(programs, ",")
	}
	if opt.seed == 0 {
		opt.seed = rand.Uint64() >> 32
	}
	if opt.limit == 0 {
		opt.limit = time.Duration(opt.rounds)*20*time.Second + 20*time.Minute
	}
	switch {
	case flag.NArg() > 0:
		return opt, fmt.Errorf("unknown argument %q", flag.Arg(0))
	case runtime.GOOS != "linux":
		return opt, fmt.Errorf("needs /proc, which %s does not have", runtime.GOOS)
	case opt.teamctl == "":
		return opt, fmt.Errorf("-teamctl is needed: run it through scripts/chaos")
	case opt.rounds < 1 || opt.settle < 1 || opt.agents < 8:
		return opt, fmt.Errorf("at least one round and eight agents")
	case slices.ContainsFunc(opt.programs, func(p string) bool { return !slices.Contains(programNames(), p) }):
		return opt, fmt.Errorf("programs are %s", strings.Join(programNames(), ", "))
	}
	return opt, nil
}

// chaos is a whole run; its result is the exit status.
func chaos(ctx context.Context, opt options) int {
	ctx, cancel := context.WithTimeout(ctx, opt.limit)
	defer cancel()
	began := time.Now()
	fmt.Printf("chaos: seed %d, %d rounds, %d agents on %s, and stand-ins: %s\n", opt.seed, opt.rounds, opt.agents, strings.Join(opt.backends, ", "), strings.Join(opt.programs, ", "))
	w, err := newWorld(ctx, opt)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: error:", err)
		return 1
	}
	err = w.run(ctx)
	if err == nil {
		err = w.end(ctx)
	}
	if err != nil {
		w.report(err)
		return 1
	}
	if err := w.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos: error:", err)
		return 1
	}
	w.summary(time.Since(began))
	return 0
}
