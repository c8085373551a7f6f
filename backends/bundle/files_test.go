package bundle

import (
	"os"
	"testing"

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
