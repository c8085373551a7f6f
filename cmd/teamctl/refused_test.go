package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/teamctl/teamctl/team"
)

// refusedPath has the sentences of all errors that scripts expect by their reason, with the hints.
// A reworded error changes this file and no script:
//
//	go test ./cmd/teamctl -run TestScripts/NAME -update
//
// An entry is the line of the script and, below it, the error. "…" stands for any text, where runs
// differ; -update keeps an entry that matches.
const refusedPath = "testdata/refused.txt"

// refusal is one entry: the line of the script, and its error, indented.
type refusal struct{ line, says string }

// refusals are the errors of the refused lines of a run, by script, in their order.
type refusals struct {
	mu sync.Mutex
	by map[string][]refusal
}

// refused N REASON teamctl VERB ARGS...: the command exits with status N, and its error has the
// reason, or none if REASON is "-". A script uses it instead of the error's sentence, which may be
// reworded. The error is in stdout, as JSON.
func (r *refusals) refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || args[2] != "teamctl" {
		ts.Fatalf("usage: refused N reason teamctl verb...")
	}
	cmdExitcode(ts, false, slices.Concat(args[:1], args[2:4], []string{"--json"}, args[4:]))
	var doc struct {
		Error struct{ Message, Reason, Hint string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc); err != nil {
		ts.Fatalf("%v: %s", err, ts.ReadFile("stdout"))
	}
	if want := strings.TrimPrefix(args[1], "-"); doc.Error.Reason != want {
		ts.Fatalf("reason %q, want %q", doc.Error.Reason, want)
	}
	says := doc.Error.Message
	if doc.Error.Hint != "" {
		says += "\nhint: " + doc.Error.Hint
	}
	n := normal{dirs: dirsOf(ts)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[ts.Name()] = append(r.by[ts.Name()], refusal{
		line: n.text(team.ShellLine(args)),
		says: "\t" + strings.ReplaceAll(n.text(says), "\n", "\n\t"),
	})
}

// check compares the errors of the scripts that have run with the golden. A script that has ended
// early is compared as far as it came.
func (r *refusals) check(t *testing.T) {
	want, err := readRefusals()
	if err != nil {
		t.Error(err)
		return
	}
	for script, got := range r.by {
		lines, err := refusedLines(script)
		if err != nil {
			t.Error(err)
			return
		}
		for i, g := range got {
			var w refusal
			if i < len(want[script]) {
				w = want[script][i]
			}
			switch {
			case w.line == g.line && matches(w.says, g.says):
				got[i] = w
			case !*update:
				t.Errorf("%s has changed (go test ./cmd/teamctl -run TestScripts/%s -update)\ngot:  %s\n%s\nwant: %s\n%s", refusedPath, script, g.line, g.says, w.line, w.says)
			}
		}
		if len(got) < lines && len(got) < len(want[script]) {
			got = append(got, want[script][len(got):]...)
		}
		want[script] = got
	}
	if *update {
		err = writeRefusals(want)
	}
	if err != nil {
		t.Error(err)
	}
}

// refusedLines counts the refused lines of a script; 0 if there is no such script.
func refusedLines(script string) (int, error) {
	data, err := os.ReadFile(filepath.Join("testdata/script", script+".txtar"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return len(regexp.MustCompile(`(?m)^refused `).FindAll(data, -1)), nil
}

// matches reports whether an entry of the golden describes an error.
func matches(want, says string) bool {
	parts := strings.Split(want, "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(parts, ".*") + `)$`).MatchString(says)
}

// readRefusals reads the golden, by script.
func readRefusals() (map[string][]refusal, error) {
	by := map[string][]refusal{}
	data, err := os.ReadFile(refusedPath)
	if errors.Is(err, fs.ErrNotExist) {
		return by, nil
	}
	if err != nil || len(data) == 0 {
		return by, err
	}
	for _, entry := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n\n") {
		head, says, _ := strings.Cut(entry, "\n")
		script, line, _ := strings.Cut(head, ": ")
		by[script] = append(by[script], refusal{line, says})
	}
	return by, nil
}

func writeRefusals(by map[string][]refusal) error {
	var entries []string
	for _, script := range slices.Sorted(maps.Keys(by)) {
		for _, e := range by[script] {
			entries = append(entries, script+": "+e.line+"\n"+e.says)
		}
	}
	return os.WriteFile(refusedPath, []byte(strings.Join(entries, "\n\n")+"\n"), 0o644)
}

// TestRefusedGolden: the golden has as many entries of each script as the script has refused lines.
func TestRefusedGolden(t *testing.T) {
	t.Parallel()
	by, err := readRefusals()
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		script := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if n, err := refusedLines(script); err != nil || n != len(by[script]) {
			t.Errorf("%s has %d entries of %s, which has %d refused lines; %v", refusedPath, len(by[script]), script, n, err)
		}
		delete(by, script)
	}
	for script := range by {
		t.Errorf("%s has entries of %s, which does not exist", refusedPath, script)
	}
	for want, says := range map[string]string{"a": "a", "a … c": "a b\nb c", "…": ""} {
		if !matches(want, says) || matches(want+"x", says) {
			t.Errorf("%q and %q", want, says)
		}
	}
}
