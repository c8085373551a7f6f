// Command bench measures teamctl against the floor of the machine it runs on and
// writes the figures beside the goals to bench/RESULTS.md. Absolute figures drift
// with the machine and the hour; only ratios inside one interleaved run count.
//
// Each benchmark is one file here: it adds one entry to benchmarks. scripts/bench
// builds teamctl and calls this program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/fakecli"
)

// benchmark is one section of the results. Run measures with the teamctl program
// and returns the section's text in Markdown, without its heading. Note says below
// the figures what they can and cannot be, and why.
type benchmark struct {
	name  string
	title string
	run   func(ctx context.Context, e env) (string, error)
	note  string
}

// env is what a benchmark is given: the program, how many rounds to measure, and a
// directory of its own that is removed afterwards.
type env struct {
	teamctl string
	rounds  int
	quick   bool // smaller and shorter, to see that it works
	dir     string
	clients string // directory of the real agent CLIs, "" for stand-ins only
	log     io.Writer
}

var benchmarks = []benchmark{startup, hooks, worktrees, claims, growth, mailBench, appends, board, scratchpad, transcripts,
	unread, watch, copies, turns, thoughts, thinkers, streams, builtin, soak, spawn, exits, memoryUse, cpu, adopt, relay, attach, screens, latency}

func main() {
	if status, ok := fakecli.Main(os.Args); ok { // of the latency benchmark
		os.Exit(status)
	}
	if work := os.Getenv(envChild); work != "" {
		if err := childMain(work); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", work+":", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	teamctl := flags.String("teamctl", "bin/teamctl", "the `program` to measure")
	rounds := flags.Int("rounds", 40, "how often each thing is measured, 20 or more")
	quick := flags.Bool("quick", false, "smaller sizes and shorter times where a benchmark has some")
	clients := flags.String("clients", "", "measure the real agent CLIs in this `directory` too, which scripts/test-clients has made")
	results := flags.String("results", "", "write the sections that were run to this `file`")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: bench [flags] [NAME...]")
		flags.PrintDefaults()
		for _, b := range benchmarks {
			fmt.Fprintf(flags.Output(), "  %-12s %s\n", b.name, b.title)
		}
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 20 {
		return fmt.Errorf("rounds: %d is too few for a median to mean anything, take 20 or more", *rounds)
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	for _, b := range chosen {
		fmt.Fprintf(out, "## %s\n\n", b.title)
		text, err := measure(ctx, b, env{teamctl: *teamctl, rounds: *rounds, quick: *quick, clients: *clients, log: out})
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Fprintln(out, text)
		if *results == "" {
			continue
		}
		// At once: a run that is broken off keeps what it has measured.
		if err := update(*results, []section{{title: b.title, text: text}}); err != nil {
			return err
		}
	}
	return nil
}

func choose(names []string) ([]benchmark, error) {
	if len(names) == 0 {
		return benchmarks, nil
	}
	var chosen []benchmark
	for _, n := range names {
		i := slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == n })
		if i < 0 {
			return nil, fmt.Errorf("no benchmark %q", n)
		}
		chosen = append(chosen, benchmarks[i])
	}
	return chosen, nil
}

// measure runs b in a directory of its own. The name is short: sockets live in it.
func measure(ctx context.Context, b benchmark, e env) (text string, err error) {
	e.dir, err = os.MkdirTemp("", "tb")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(e.dir)) }()
	text, err = b.run(ctx, e)
	if e.quick {
		text = "A quick run: smaller sizes, shorter times, and other work on the machine where the load says so.\n\n" + text
	}
	if b.note != "" {
		text = strings.TrimSpace(text) + "\n\n" + b.note
	}
	return strings.TrimSpace(text) + "\n", err
}
