// Clients drives the real agent CLIs through teamctl, against a scripted model, and
// prints what works as a table. See scripts/test-clients.
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
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/team"
)

// options are the flags.
type options struct {
	exe, cache, only, out string
	limit                 time.Duration
	wait                  time.Duration // of teamctl stop; 0: its default
	keep, hold            bool
	beside                int // number of columns at a time
	busy                  int // seconds that a turn works in which something happens
	letters, rounds, many int // messages that each row about mail sends, kills or interrupts of an agent, messages of the row by hand
}

func main() {
	var o options
	flag.StringVar(&o.exe, "teamctl", "", "`path` of the program under test")
	flag.StringVar(&o.cache, "clients", "", "`directory` that the CLIs are installed in")
	flag.StringVar(&o.only, "only", "", "comma-separated `names` of CLIs to run, NAME@VERSION for an older one, mixed for the mixed team, and texts of which one has to be in a row's name, but the first one's")
	flag.StringVar(&o.out, "out", "", "write the table to `FILE` as well")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "`bound` of every wait: under a load of 50 opencode takes a minute to start, and then some seconds for each message")
	flag.IntVar(&o.busy, "busy", 8, "`seconds` that a turn works in which something happens")
	flag.IntVar(&o.letters, "letters", 50, "how many messages a row of mail sends")
	flag.IntVar(&o.rounds, "rounds", 15, "how often a row kills or interrupts an agent that was just given a message")
	flag.IntVar(&o.many, "many", 1000, "how many messages the row by hand sends")
	flag.DurationVar(&o.wait, "wait", 0, "how long `teamctl stop` waits for an answer, instead of its own default")
	flag.IntVar(&o.beside, "beside", 3, "how many `programs` are tried side by side; 1 to have their messages in order")
	flag.BoolVar(&o.keep, "keep", false, "keep the directories of the run")
	flag.BoolVar(&o.hold, "hold", false, "check nothing: print the environment of a run, to try things in by hand, and wait")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (ok bool, err error) {
	clients := agentlab.Clients()
	if o.hold {
		return true, hold(ctx, o, clients)
	}
	programs, texts, err := chosen(o.only)
	if err != nil {
		return false, err
	}
	wanted := func(name string) bool { return len(programs) == 0 || has(programs, name) }
	var jobs []job
	for _, c := range slices.Concat(clients, agentlab.Older()) {
		if wanted(c.Label()) {
			jobs = append(jobs, job{c.Label(), func(ctx context.Context, t *table) error { return runClient(ctx, o, c, rowsOf(texts), t) }})
		}
	}
	if wanted("mixed") && (len(texts) == 0 || len(programs) > 0) {
		jobs = append(jobs, job{mixedTeam, func(ctx context.Context, t *table) error { return runMixed(ctx, o, clients, t) }})
	}
	began, before := time.Now(), load()
	t, err := sideBySide(ctx, jobs, max(o.beside, 1))
	if err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stderr, "in %s, load %s at its begin and %s at its end\n", time.Since(began).Round(time.Second), before, load())
	text := t.markdown()
	fmt.Print(text)
	if o.out != "" {
		err = os.WriteFile(o.out, []byte(text), 0o644)
	}
	return t.passed(), err
}

// job runs the rows of one column, in a world of its own.
type job struct {
	column string
	do     func(context.Context, *table) error
}

// sideBySide runs up to n jobs at a time, and returns their results in the order of the jobs. Much
// of a row is waiting.
func sideBySide(ctx context.Context, jobs []job, most int) (table, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := make([]table, len(jobs))
	free := make(chan struct{}, most)
	var running sync.WaitGroup
	for i, j := range jobs {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			if err := j.do(ctx, &parts[i]); err != nil {
				cancel(fmt.Errorf("%s: %w", j.column, err))
			}
		})
	}
	running.Wait()
	var all table
	for _, p := range parts {
		all.results = append(all.results, p.results...)
	}
	return all, context.Cause(ctx)
}

// load is the load of the machine in the last minute, "?" if it is unknown.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); err == nil && len(f) > 0 {
		return f[0]
	}
	return "?"
}

// chosen separates the names of programs from texts of rows; each must be one of them.
func chosen(only string) (programs, texts []string, err error) {
	known := []string{"mixed"}
	for _, c := range slices.Concat(agentlab.Clients(), agentlab.Older()) {
		known = append(known, c.Label())
	}
	for word := range strings.SplitSeq(only, ",") {
		isRow := func(k check) bool { return strings.Contains(k.name, word) }
		switch {
		case word == "":
		case has(known, word):
			programs = append(programs, word)
		case slices.ContainsFunc(slices.Concat(checks, byHand), isRow):
			texts = append(texts, word)
		default:
			return nil, nil, fmt.Errorf("--only: %q is not a program and in no row's name; programs are %s", word, strings.Join(known, ", "))
		}
	}
	return programs, texts, nil
}

// rowsOf returns the rows of a run: all but those by hand or, if there are texts, the first and each
// whose name has one of them.
func rowsOf(texts []string) []check {
	if len(texts) == 0 {
		return checks
	}
	out := slices.Clone(checks[:1])
	for _, k := range slices.Concat(checks[1:], byHand) {
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(k.name, t) }) {
			out = append(out, k)
		}
	}
	return out
}

// hold creates the world of a run and leaves it to a person.
func hold(ctx context.Context, o options, clients []agentlab.Client) (err error) {
	w, err := newWorld(ctx, o, clients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(o.keep)) }()
	fmt.Println("cd " + w.Repo)
	for _, e := range w.Env {
		name, value, _ := strings.Cut(e, "=")
		fmt.Printf("export %s='%s'\n", name, value)
	}
	<-ctx.Done()
	return nil
}

// runClient runs every check with one CLI in a world of its own.
func runClient(ctx context.Context, o options, c agentlab.Client, checks []check, t *table) (err error) {
	w, err := newWorld(ctx, o, []agentlab.Client{c})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(o.keep)) }()
	for _, k := range checks {
		var note string
		began := time.Now()
		err := w.lives()
		if err == nil {
			note, err = k.do(ctx, w, c)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.add(result{k.name, c.Label(), note, err, time.Since(began)})
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", c.Label(), k.name, err)
			w.show(ctx, os.Stderr)
		}
	}
	return nil
}

// show writes the screen of each member, and the end of the supervisor's log.
func (w *world) show(ctx context.Context, out io.Writer) {
	all, err := w.members(ctx)
	if err != nil {
		fmt.Fprintln(out, err)
	}
	for _, m := range all {
		if screen, err := w.teamctl(ctx, "capture", m.Name); err == nil {
			fmt.Fprintf(out, "%s is %s, %s:\n%s\n", m.Name, m.Observed, m.Activity, indent(screen))
		}
	}
	if log, err := os.ReadFile(team.Home{Dir: w.Teams}.Team("demo").SupervisorLog()); err == nil {
		fmt.Fprintln(out, indent(newest(string(log), logLines)))
	}
}

// logLines is the number of lines of the supervisor's log that are printed of a check that fails.
const logLines = 100

// newest returns the last lines of a text.
func newest(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

func indent(s string) string {
	var b strings.Builder
	for l := range strings.Lines(s) {
		if strings.TrimSpace(l) != "" {
			b.WriteString("    | " + l)
		}
	}
	return b.String()
}
