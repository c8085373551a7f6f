// Command test.d runs go test for scripts/test: test.d COUNTS ARG... . It prints a line
// for each package as it ends and the output of what failed, and writes the numbers of
// tests that passed, failed and were skipped to the file COUNTS. In a run of all
// packages the tests that the documents name as proof must have passed.
//
// As test.d COUNTS -long DIR [LIMIT] it runs the long suite instead, with test binaries in DIR,
// and begins no part of it after LIMIT, a duration.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/named"
)

const module = "github.com/teamctl/teamctl"

// slowest are the packages that take longest, slowest first: one that starts last runs
// alone in the end.
var slowest = []string{"./cmd/teamctl", "./scripts/clients.d", "./worktree", "./backends/tmux", "./ledger", "./supervisor", "./inbox", "./internal/courier", "./backends/pty"}

// flagLong asks for the long suite.
const flagLong = "-long"

func main() {
	counts, args := os.Args[1], os.Args[2:]
	if len(args) > 0 && args[0] == flagLong {
		os.Exit(runLong(counts, args[1:]))
	}
	whole := slices.Contains(args, "./...")
	if whole {
		args = slices.Insert(args, slices.Index(args, "./..."), slowest...)
	}
	r := newRun(os.Stdout)
	status := r.goTest(args)
	if status == 0 && whole {
		status = r.proofs()
	}
	os.Exit(r.end(counts, status))
}

// runLong runs the long suite and returns the exit status.
func runLong(counts string, args []string) int {
	s := suite{out: os.Stdout, root: ".", bins: args[0]}
	tests, err := long(".")
	var all []unit
	if err == nil {
		all, err = units(".", tests)
	}
	if err == nil && len(args) > 1 {
		s.limit, err = time.ParseDuration(args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	status := s.run(all)
	return s.total.end(counts, status)
}

// key is a test, or with an empty name a package.
type key struct{ pkg, test string }

type result struct {
	action  string // pass, fail, skip
	elapsed float64
}

type run struct {
	out     io.Writer
	results map[key]result
	tails   map[key][]string // output of what has not passed
	counts  map[string]int   // of top-level tests, by action
	failed  []string
	racing  map[string]bool // packages of which a report of a data race is being read
	quiet   bool            // show no line of a package
}

func newRun(out io.Writer) run {
	return run{out: out, results: map[key]result{}, tails: map[key][]string{}, counts: map[string]int{}, racing: map[string]bool{}}
}

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

// goTest runs go test and returns its exit status.
func (r *run) goTest(args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "go test:", err)
		return 1
	}
	r.read(out)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "go test:", err)
		return 1
	}
}

// read takes the events of a run until there are no more.
func (r *run) read(events io.Reader) {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 {
			if jerr := json.Unmarshal(line, &e); jerr != nil {
				_, _ = r.out.Write(line) // go test itself had something to say
			} else {
				r.event(e)
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *run) event(e event) {
	k := key{strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/"), e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pause":
		r.results[k] = result{action: "pause"}
	case "cont":
		delete(r.results, k)
	case "output":
		if !r.race(k, e.Output) {
			r.tails[k] = append(r.tails[k], e.Output)
		}
	case "pass", "fail", "skip":
		r.results[k] = result{e.Action, e.Elapsed}
		if e.Test == "" {
			r.pkg(k, e)
			return
		}
		if !strings.Contains(e.Test, "/") {
			r.counts[e.Action]++
			r.counts[k.pkg]++
		}
		switch e.Action {
		case "fail":
			r.fail(k)
		case "pass":
			delete(r.tails, k)
		}
	}
}

// race shows the report of a data race; false for a line of other output. The report has no test:
// go test gives it to any that is running.
func (r *run) race(k key, line string) bool {
	begins := strings.HasPrefix(line, "WARNING: DATA RACE")
	if !begins && !r.racing[k.pkg] {
		return false
	}
	if begins {
		fmt.Fprintf(r.out, "RACE  %s\n", k.pkg)
	}
	r.racing[k.pkg] = !strings.HasPrefix(line, "=====")
	fmt.Fprint(r.out, "    "+strings.TrimRight(line, "\n")+"\n")
	return true
}

// fail shows a failed test at once, with all of its output.
func (r *run) fail(k key) {
	r.failed = append(r.failed, strings.TrimPrefix(k.pkg+" "+k.test, " "))
	fmt.Fprintf(r.out, "FAIL  %s %s\n", k.pkg, k.test)
	for _, l := range r.tails[k] {
		fmt.Fprint(r.out, "    "+strings.TrimRight(l, "\n")+"\n")
	}
	delete(r.tails, k)
}

// pkg is the line of a package that has ended.
func (r *run) pkg(k key, e event) {
	name := k.pkg
	if name == "" {
		name = "."
	}
	word := map[string]string{"pass": "ok", "fail": "FAIL", "skip": "-"}[e.Action]
	if e.Action == "skip" { // a package without tests
		return
	}
	if !r.quiet {
		fmt.Fprintf(r.out, "%-5s %-24s %4d tests %7.1f s\n", word, name, r.counts[k.pkg], e.Elapsed)
	}
	if e.Action != "fail" {
		return
	}
	// Tests that were still running when the process ended have no result: theirs is
	// the output that matters, with the package's own.
	own, never := 0, 0
	for t := range r.tails {
		if t.pkg != k.pkg || t.test == "" {
			continue
		}
		if res, done := r.results[t]; res.action == "pause" {
			never++
		} else if !done {
			r.results[t] = result{action: "fail"}
			if !strings.Contains(t.test, "/") {
				r.counts["fail"]++
			}
			r.fail(t)
			own++
		}
	}
	if never > 0 {
		fmt.Fprintf(r.out, "FAIL  %s: %d tests did not run\n", k.pkg, never)
	}
	for _, l := range r.tails[k] {
		fmt.Fprint(r.out, "    "+strings.TrimRight(l, "\n")+"\n")
	}
	if own == 0 && !slices.ContainsFunc(r.failed, func(f string) bool { return strings.HasPrefix(f, k.pkg+" ") }) {
		r.counts["fail"]++ // it did not build, or TestMain found something
		r.failed = append(r.failed, name)
	}
}

// proofs checks that every test that a document names has run and passed. One that was
// skipped is named: this machine lacks what it needs.
func (r *run) proofs() int {
	tests, err := named.Read(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status, passed := 0, 0
	for _, t := range tests {
		switch r.proof(t) {
		case "pass":
			passed++
		case "skip":
			fmt.Fprintf(r.out, "skip  %s %s: %s names it, it was skipped here\n", t.Dir, t.Name, t.Doc)
		default:
			fmt.Fprintf(r.out, "FAIL  %s %s: %s names it, and it has not passed\n", t.Dir, t.Name, t.Doc)
			r.counts["fail"]++
			status = 1
		}
	}
	fmt.Fprintf(r.out, "%d of %d tests that docs/faults.md and docs/scenarios.md name have passed\n", passed, len(tests))
	return status
}

// proof is what became of a named test.
func (r *run) proof(t named.Test) string {
	if t.Dir != named.Shared {
		return r.results[key{t.Dir, t.Name}].action
	}
	best := "" // of all backends
	for k, res := range r.results {
		if strings.HasPrefix(k.pkg, "backends/") && k.test == t.Name && best != "pass" {
			best = res.action
		}
	}
	return best
}

// end prints the names of what failed, writes the counts, and returns the exit status.
func (r *run) end(counts string, status int) int {
	for _, f := range r.failed {
		fmt.Fprintln(r.out, "FAIL ", f)
	}
	if status != 0 && r.counts["fail"] == 0 {
		r.counts["fail"] = 1 // go test itself
	}
	if err := os.WriteFile(counts, fmt.Appendln(nil, r.counts["pass"], r.counts["fail"], r.counts["skip"]), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
