package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// goldens is the directory with the contract of --json: one document for each command, or the
// first element of a stream. docs/cli-json.md is generated from it.
const goldens = "testdata/json"

func goldenPath(key string) string {
	return filepath.Join(goldens, strings.ReplaceAll(key, " ", "-")+".json")
}

// golden KEY ARGS...: "teamctl ARGS --json" writes the golden of KEY, apart from values that
// differ between runs or machines. An argument @FILE is replaced by the content of the file.
func cmdGolden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: golden key args...")
	}
	key := strings.ReplaceAll(args[0], "-", " ")
	if _, ok := shapes[key]; !ok {
		ts.Fatalf("%q has no shape", key)
	}
	line := []string{"--json"}
	for _, a := range args[1:] {
		if file, ok := strings.CutPrefix(a, "@"); ok {
			a = ts.ReadFile(file)
		}
		line = append(line, a)
	}
	ts.Check(ts.Exec("teamctl", line...))
	n := normal{dirs: dirsOf(ts), key: key}
	got, err := n.document(ts.ReadFile("stdout"))
	ts.Check(err)
	want, err := os.ReadFile(goldenPath(key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
	if bytes.Equal(got, want) {
		return
	}
	if *update {
		ts.Check(errors.Join(os.MkdirAll(goldens, 0o755), os.WriteFile(goldenPath(key), got, 0o644)))
		return
	}
	ts.Fatalf("%s has changed (go test ./cmd/teamctl -run TestScripts/json -update, and say so in the changelog)\ngot:\n%s\nwant:\n%s", goldenPath(key), got, want)
}

// dirsOf returns the directories of a script, and what goldens have instead.
func dirsOf(ts *testscript.TestScript) [][2]string {
	return [][2]string{{ts.Getenv("SHORT"), "/tmp/x"}, {ts.Getenv("WORK"), "/work"}}
}

// normal makes documents independent of the run.
type normal struct {
	dirs [][2]string
	key  string
}

// varying matches the values that differ between runs. The tests start this binary as a program
// thousands of times, so the expressions are compiled at their first use.
type varying struct{ uuid, pane, run, hash, time, stamp, plain, millis *regexp.Regexp }

var reOf = sync.OnceValue(func() varying {
	return varying{
		uuid:   regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		pane:   regexp.MustCompile(`\bp[0-9a-f]{12}\b`),
		run:    regexp.MustCompile(`/r/[0-9a-f]{12}/`),
		hash:   regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b`),
		time:   regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`),
		stamp:  regexp.MustCompile(`\d{8}T\d{6}\.\d{3}Z`),
		plain:  regexp.MustCompile(`\d{8}T\d{9}Z`),
		millis: regexp.MustCompile(`\b\d{13}\b`),
	}
})

// anyNumber has the numbers that depend on the run.
var anyNumber = map[string]float64{
	"pid": 4242, "supervisorPid": 4242, "took": 1000000, "diskBytes": 4096, "StartTicks": 1, "startTicks": 1, "lastEventSeq": 99, "seq": 7, "attached": 1, "seconds": 1.5, "perHour": 1.5, "median": 1, "p90": 1, "longest": 1,
}

// anyText has the texts that depend on the machine, by command.
var anyText = map[string][]string{
	"doctor": {"detail", "hint"}, "agents test": {"detail"}, "version": {"version", "commit", "go", "os", "arch", "sqlite"}, "debug events": {"what"}, "debug state": {"what", "timers"},
	"debug goroutines": {"goroutines"}, "debug panes": {"version"}, "capture": {"text"},
	"explain": {"at", "since"}, "mcp config": {"text"}, "call": {"description"}, "web ls": {"id"},
}

// firstOnly has the commands whose list has a different length on different machines.
var firstOnly = map[string]bool{"doctor": true, "agents": true, "debug events": true, "debug state": true, "call": true, "agents ls": true}

func (n normal) document(out string) ([]byte, error) {
	dec := json.NewDecoder(strings.NewReader(out))
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("no JSON: %w: %q", err, out)
	}
	if !shapes[n.key].stream {
		if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("more than one document: %q", out)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(n.value("", v))
	return b.Bytes(), err
}

func (n normal) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = n.value(k, e)
		}
		return v
	case []any:
		if key == "queue" && len(v) > 1 { // one element for each second of the run
			v = v[:1]
		}
		if firstOnly[n.key] && len(v) > 1 {
			v = v[:1]
		}
		for i, e := range v {
			v[i] = n.value(key, e)
		}
		return v
	case float64:
		if x, ok := anyNumber[key]; ok && v != 0 {
			return x
		}
		if v > 1e12 {
			return 1700000000000
		}
		if key == "size" && n.key == "ledger check" { // changed by every migration
			return 237568
		}
		return v
	case bool:
		return v || key == "ready" || key == "dirty" // settles during the test
	case string:
		for _, k := range anyText[n.key] {
			if k == key {
				return "..."
			}
		}
		return n.text(v)
	}
	return v
}

func (n normal) text(s string) string {
	for _, d := range n.dirs {
		s = strings.ReplaceAll(s, d[0], d[1])
	}
	re := reOf()
	s = re.uuid.ReplaceAllString(s, "00000000-0000-4000-8000-000000000000")
	s = re.run.ReplaceAllString(s, "/r/0123456789ab/")
	s = re.pane.ReplaceAllString(s, "p0123456789ab")
	s = re.hash.ReplaceAllStringFunc(s, func(h string) string { return strings.Repeat("0123456789abcdef", 4)[:len(h)] })
	s = re.stamp.ReplaceAllString(s, "20260102T030405.678Z")
	s = re.plain.ReplaceAllString(s, "20260102T030405678Z")
	s = re.time.ReplaceAllString(s, "2026-01-02T03:04:05Z")
	return re.millis.ReplaceAllString(s, "1700000000000")
}

// TestJSONContract checks that every reading command has a golden and every golden a command.
func TestJSONContract(t *testing.T) {
	t.Parallel()
	for key, s := range shapes {
		data, err := os.ReadFile(goldenPath(key))
		if errors.Is(err, fs.ErrNotExist) {
			if s.reads {
				t.Errorf("teamctl %s has no golden: add it to testdata/script/json.txtar", key)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]json.RawMessage
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		var list []map[string]json.RawMessage
		switch {
		case s.list == "", doc[s.list] == nil && doc[s.name] != nil: // or a single element
			list = append(list, doc)
		case s.name == itself:
			var texts []string
			if err := json.Unmarshal(doc[s.list], &texts); err != nil || len(texts) == 0 && s.reads {
				t.Errorf("%s: %q is not a list of texts: %s", key, s.list, doc[s.list])
			}
			continue
		case json.Unmarshal(doc[s.list], &list) != nil:
			t.Errorf("%s: %q is not a list of objects: %s", key, s.list, doc[s.list])
		}
		for _, e := range list {
			if s.name != "" && e[s.name] == nil {
				t.Errorf("%s: an element has no %q, which -o name writes", key, s.name)
			}
		}
		if s.list != "" && len(list) == 0 {
			t.Errorf("%s: the golden's list %q is empty, so it shows nothing", key, s.list)
		}
	}
	files, err := filepath.Glob(filepath.Join(goldens, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		known := false
		for key := range shapes {
			known = known || goldenPath(key) == f
		}
		if !known {
			t.Errorf("%s belongs to no command", f)
		}
	}
}
