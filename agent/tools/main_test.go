package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

// envEditor makes the test binary edit the file f in a directory until it is killed.
const envEditor = "TOOLS_TEST_EDITOR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envEditor); dir != "" {
		fmt.Fprintln(os.Stderr, editForEver(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func editForEver(dir string) error {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		return err
	}
	var edit, read Tool
	for _, t := range s.Tools() {
		switch t.Name {
		case "edit":
			edit = t
		case "read":
			read = t
		}
	}
	if _, err := read.Run(context.Background(), Call{Input: json.RawMessage(`{"path":"f"}`)}); err != nil {
		return err
	}
	for {
		for _, input := range []string{`{"path":"f","edits":[{"old":"old","new":"new","all":true}]}`, `{"path":"f","edits":[{"old":"new","new":"old","all":true}]}`} {
			if _, err := edit.Run(context.Background(), Call{Input: json.RawMessage(input)}); err != nil {
				return err
			}
		}
	}
}

// rig is a Space in a directory of its own.
type rig struct {
	testing.TB
	*Space
	dir string
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	dir := t.TempDir()
	cfg := Config{Dir: dir, Outputs: t.TempDir(), Shell: ShellConfig{Env: os.Environ()}}
	for _, c := range change {
		c(&cfg)
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{t, s, dir}
}

func (r *rig) file(name, content string) string {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.Fatal(err)
	}
	return path
}

func (r *rig) content(name string) string {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

func (r *rig) tool(name string) Tool {
	r.Helper()
	for _, t := range r.Tools() {
		if t.Name == name {
			return t
		}
	}
	r.Fatalf("no tool %s", name)
	return Tool{}
}

// call calls a tool with an input given as a map.
func (r *rig) call(name string, in map[string]any) Out {
	r.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		r.Fatal(err)
	}
	return r.raw(name, string(raw))
}

func (r *rig) raw(name, input string) Out {
	r.Helper()
	out, err := r.tool(name).Run(context.Background(), Call{ID: "1", Input: json.RawMessage(input)})
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	return out
}

func (r *rig) read(name string) Out { r.Helper(); return r.call("read", map[string]any{"path": name}) }

func (r *rig) edit(name string, pairs ...string) Out {
	r.Helper()
	var edits []map[string]any
	for i := 0; i < len(pairs); i += 2 {
		edits = append(edits, map[string]any{"old": pairs[i], "new": pairs[i+1]})
	}
	return r.call("edit", map[string]any{"path": name, "edits": edits})
}

// wants checks the outcome of a call and that its text contains each of has.
func (r *rig) wants(o Out, failed bool, has ...string) {
	r.Helper()
	if o.Failed != failed {
		r.Errorf("failed is %v: %s", o.Failed, o.Text)
	}
	for _, h := range has {
		if !strings.Contains(o.Text, h) {
			r.Errorf("%q has no %q", o.Text, h)
		}
	}
}

// rulesOf returns rules that do not change.
func rulesOf(p team.Permissions) func(context.Context) (Rules, error) {
	return func(context.Context) (Rules, error) {
		return Rules{Permissions: p, Member: "dev", Mode: team.ModeDefault}, nil
	}
}

func rule(tool, path, command string) team.PermissionRule {
	return team.PermissionRule{Tool: tool, Path: path, Command: command}
}
