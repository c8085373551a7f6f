package bundle

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	if _, err := ReadPane(b, "g"); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("missing: %v", err)
	}
	p := team.Pane{Generation: "g", PaneID: "%1", ServerPID: 4, ServerStart: 1 << 60}
	if err := WritePane(b, p); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPane(b, "g"); err != nil || got != p {
		t.Errorf("pane = %+v, %v", got, err)
	}
	if fi, err := os.Stat(b.Pane()); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", fi, err)
	}
	if err := os.WriteFile(b.Exit(), []byte(`{"generation":"g","known":tr`), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := ReadExit(b, "g"); err == nil || team.IsCode(err, team.CodeNotFound) || e.Known {
		t.Errorf("a torn file: %+v, %v", e, err)
	}
	if err := os.WriteFile(string(b)+"/proc.json.123.tmp", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(b)
	es, err := os.ReadDir(string(b))
	if err != nil || len(es) != 2 {
		t.Errorf("after the sweep: %v, %v", es, err)
	}
}

// An exit is recorded as unknown where there is no record: a damaged one is kept
// aside, and one that only cannot be read now stays.
func TestLostExit(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		put  func(path string) error
		lost bool
		kept string
	}{
		"missing":            {func(string) error { return nil }, true, ""},
		"another generation": {func(path string) error { return os.WriteFile(path, []byte(`{"generation":"f"}`), 0o600) }, true, ""},
		"torn":               {func(path string) error { return os.WriteFile(path, []byte(`{"generation":"g"`), 0o600) }, true, `{"generation":"g"`},
		"unreadable":         {func(path string) error { return os.Symlink(path, path) }, false, ""},
	} {
		b := team.Bundle(t.TempDir())
		if err := c.put(b.Exit()); err != nil {
			t.Fatal(err)
		}
		_, err := ReadExit(b, "g")
		if err == nil || NoExit(err) != c.lost {
			t.Errorf("%s: there is none %v, want %v: %v", what, NoExit(err), c.lost, err)
		}
		if err := WriteLostExit(b, backends.Exit{Generation: "g", Reason: "lost"}, err); (err == nil) != c.lost {
			t.Errorf("%s: %v", what, err)
		}
		e, err := ReadExit(b, "g")
		if (err == nil) != c.lost || c.lost && e.Reason != "lost" {
			t.Errorf("%s: afterwards %+v, %v", what, e, err)
		}
		if data, _ := os.ReadFile(b.Exit() + damagedExit); string(data) != c.kept {
			t.Errorf("%s: kept %q", what, data)
		}
	}
}
