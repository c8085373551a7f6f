package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/named"
)

// TestRun: each package has a line, what failed or did not end is shown with its
// output, and what passed is not.
func TestRun(t *testing.T) {
	t.Parallel()
	const m = `"Package":"github.com/teamctl/teamctl/`
	var out strings.Builder
	r := run{out: &out, results: map[key]result{}, tails: map[key][]string{}, counts: map[string]int{}}
	r.read(strings.NewReader(strings.Join([]string{
		`{"Action":"output",` + m + `a","Test":"TestGood","Output":"quiet\n"}`,
		`{"Action":"pass",` + m + `a","Test":"TestGood/sub"}`,
		`{"Action":"pass",` + m + `a","Test":"TestGood","Elapsed":1}`,
		`{"Action":"skip",` + m + `a","Test":"TestNotHere"}`,
		`{"Action":"pass",` + m + `a","Elapsed":1.25}`,
		`{"Action":"output",` + m + `b","Test":"TestBad","Output":"it broke\n"}`,
		`{"Action":"fail",` + m + `b","Test":"TestBad"}`,
		`{"Action":"output",` + m + `b","Test":"TestHangs","Output":"still running\n"}`,
		`{"Action":"output",` + m + `b","Test":"TestWaits","Output":"=== PAUSE TestWaits\n"}`,
		`{"Action":"pause",` + m + `b","Test":"TestWaits"}`,
		`{"Action":"fail",` + m + `b","Elapsed":2}`,
		`{"ImportPath":"github.com/teamctl/teamctl/c","Action":"build-output","Output":"c.go:1: undefined: x\n"}`,
		`{"Action":"fail",` + m + `c","Elapsed":0,"FailedBuild":"github.com/teamctl/teamctl/c"}`,
		`{"Action":"skip",` + m + `empty"}`,
	}, "\n")))
	for _, want := range []string{
		"ok    a                           2 tests     1.2 s\n", "FAIL  b TestBad\n    it broke\n", "FAIL  b TestHangs\n    still running\n",
		"FAIL  b: 1 tests did not run\n", "c.go:1: undefined: x\n", "FAIL  c ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet") || strings.Contains(out.String(), "empty") {
		t.Errorf("more than needed:\n%s", out.String())
	}
	if r.counts["pass"] != 1 || r.counts["fail"] != 3 || r.counts["skip"] != 1 {
		t.Errorf("counts %v", r.counts)
	}
	if got := r.proof(named.Test{Dir: "a", Name: "TestGood/sub"}); got != "pass" {
		t.Errorf("a subtest that passed: %q", got)
	}
	for _, n := range []named.Test{{Dir: "a", Name: "TestNever"}, {Dir: named.Shared, Name: "TestExercise/parts/adopt"}} {
		if got := r.proof(n); got != "" {
			t.Errorf("%v did not run: %q", n, got)
		}
	}
}

// TestLong: the tests that have a short form are known, and no other function asks for it.
func TestLong(t *testing.T) {
	t.Parallel()
	tests, err := long("../..")
	if err != nil {
		t.Error(err)
	}
	for dir, name := range map[string]string{"cmd/teamctl": "TestReaderKilled", "ledger": "TestTasksMatchTheModel", "scripts/clients.d": "TestFakes"} {
		if !slices.Contains(tests[dir], name) {
			t.Errorf("%s of %s is not among %v", name, dir, tests[dir])
		}
	}
	args := longArgs(map[string][]string{"x": {"TestB", "TestA"}, "cmd/teamctl": {"TestA"}})
	if want := []string{"-run", "^(TestA|TestB)$", "./cmd/teamctl", "./x"}; !slices.Equal(args, want) {
		t.Errorf("%q, want %q", args, want)
	}
}

// TestLongElsewhere: a short form that only a helper asks for could not be found.
func TestLongElsewhere(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a_test.go": "package a\n\nfunc TestA(t *testing.T) { helper(t) }\n\nfunc helper(t *testing.T) { _ = testing.Short() }\n",
		"a.go":      "package a\n\nfunc TestA(t *testing.T) { _ = testing.Short() }\n",
		"b_test.go": "package a\n\nvar short = testing.Short()\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tests, err := long(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, tests, err)
		}
	}
}

// TestRan: a test that was to run in its long form and did not is a failure.
func TestRan(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := run{out: &out, results: map[key]result{{"a", "TestX"}: {action: "pass"}, {"a", "TestY"}: {action: "skip"}}, counts: map[string]int{}}
	if status := r.ran(map[string][]string{"a": {"TestX", "TestY"}}); status != 0 || out.String() != "skip  a TestY\n" {
		t.Errorf("%d, %q", status, out.String())
	}
	if status := r.ran(map[string][]string{"a": {"TestX"}, "b": {"TestX"}}); status == 0 || !strings.Contains(out.String(), "FAIL  b TestX: it has not passed\n") {
		t.Errorf("%d, %q", status, out.String())
	}
}
