package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/named"
)

// TestRun: each package has a line, what failed or did not end is shown with its
// output, as is each data race, and what passed is not.
func TestRun(t *testing.T) {
	t.Parallel()
	const m = `"Package":"github.com/teamctl/teamctl/`
	var out strings.Builder
	r := newRun(&out)
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
		`{"Action":"output",` + m + `d","Test":"TestGood","Output":"==================\n"}`,
		`{"Action":"output",` + m + `d","Test":"TestGood","Output":"WARNING: DATA RACE\n"}`,
		`{"Action":"output",` + m + `d","Test":"TestGood","Output":"Write at 0x1\n"}`,
		`{"Action":"output",` + m + `d","Test":"TestGood","Output":"==================\n"}`,
		`{"Action":"output",` + m + `d","Test":"TestGood","Output":"quiet again\n"}`,
		`{"Action":"pass",` + m + `d","Test":"TestGood"}`,
		`{"Action":"fail",` + m + `d","Elapsed":1}`,
	}, "\n")))
	for _, want := range []string{
		"ok    a                           2 tests     1.2 s\n", "FAIL  b TestBad\n    it broke\n", "FAIL  b TestHangs\n    still running\n",
		"FAIL  b: 1 tests did not run\n", "c.go:1: undefined: x\n", "FAIL  c ",
		"RACE  d\n    WARNING: DATA RACE\n    Write at 0x1\n    =====",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "quiet") || strings.Contains(out.String(), "empty") {
		t.Errorf("more than needed:\n%s", out.String())
	}
	if r.counts["pass"] != 2 || r.counts["fail"] != 4 || r.counts["skip"] != 1 {
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
	all, err := units("../..", tests)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []unit{{dir: "cmd/teamctl", match: "^TestReaderKilled$"}, {dir: "backends/tmux", match: "^TestExercise$", race: true}} {
		if !slices.Contains(all, want) {
			t.Errorf("%v is not among %v", want, all)
		}
	}
	if !slices.ContainsFunc(all, func(u unit) bool { return u.race && strings.HasPrefix(u.match, "^TestScripts$/^(") }) {
		t.Errorf("no scenarios in %v", all)
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

// TestSuite: every part runs in a process of its own, what failed is shown, and a part in which no test ran has
// failed. Nothing begins after the limit, and what is left out is named.
func TestSuite(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module " + module + "\n\ngo 1.26\n",
		"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func TestGood(t *testing.T) {
	if os.Getenv("TEAMCTL_TEST_COMMANDS") != "" && testing.Short() {
		t.Fatal("the short form")
	}
}

func TestBad(t *testing.T)  { t.Log("it broke"); t.FailNow() }
func TestGone(t *testing.T) { os.Exit(3) }
func TestNot(t *testing.T)  { t.Skip("not here") }
`,
		"b/b_test.go": "package b\n\nfunc TestX( {\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	try := func(limit time.Duration, all ...unit) (int, *suite, string) {
		t.Helper()
		var out strings.Builder
		s := &suite{out: &out, root: root, bins: t.TempDir(), limit: limit}
		status := s.run(all)
		return status, s, out.String()
	}
	good, skipped := unit{dir: "a", match: "^TestGood$"}, unit{dir: "a", match: "^TestNot$", race: true}
	status, s, out := try(0, good, skipped)
	for _, want := range []string{"ok    a TestGood ", "skip  a TestNot (the race detector in every process) ", "2 of 2 parts of the long suite have run\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if status != 0 || s.total.counts["pass"] != 1 || s.total.counts["skip"] != 1 {
		t.Errorf("status %d, %v\n%s", status, s.total.counts, out)
	}
	for match, want := range map[string]string{"^TestBad$": "it broke\n", "^TestGone$": "FAIL  a TestGone", "^TestNone$": "FAIL  a TestNone "} {
		status, s, out := try(0, unit{dir: "a", match: match}, good)
		if status == 0 || s.total.counts["fail"] != 1 || len(s.total.failed) != 1 || !strings.Contains(out, want) || !strings.Contains(out, "ok    a TestGood ") {
			t.Errorf("%s: status %d, %v, %q\n%s", match, status, s.total.counts, s.total.failed, out)
		}
	}
	if status, s, out := try(0, unit{dir: "b", match: "^TestX$"}); status == 0 || s.total.counts["fail"] != 1 || !strings.Contains(out, "b_test.go:3") {
		t.Errorf("a package that cannot be built: status %d, %v\n%s", status, s.total.counts, out)
	}
	status, _, out = try(1, good, good, good, good)
	if status != 0 || !strings.Contains(out, "left out  a TestGood\n") {
		t.Errorf("status %d\n%s", status, out)
	}
}
