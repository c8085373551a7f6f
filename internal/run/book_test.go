package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// roleEnv makes this binary the process that a test kills: it runs a command in
// a scope of the book in that directory.
const roleEnv = "RUN_TEST_BOOK"

func runInScope(dir string) int {
	s, err := Book{Dir: dir, Team: "demo"}.Open("gate", dir)
	if err == nil {
		_, err = s.Run(context.Background(), Cmd{Command: hide, Dir: filepath.Dir(dir), Env: os.Environ(), Grace: time.Second})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// waitFor waits until a file contains a number and returns it.
func waitFor(t *testing.T, path string) int {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b, _ := os.ReadFile(path)
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				return n
			}
		case <-deadline:
			t.Fatalf("%s does not appear", path)
		}
	}
}

// A process that hides from a killed runner is found by its record. The scope
// of a living process is not touched.
func TestSweepAfterAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Book{Dir: filepath.Join(dir, "commands"), Team: "demo"}
	own, err := b.Open("setup", dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+b.Dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hidden := waitFor(t, filepath.Join(dir, "pid"))
	if left, err := b.Left(); err != nil || len(left) != 0 {
		t.Errorf("left while it lives: %+v, %v", left, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := proc.Identify(hidden); err != nil {
		t.Fatalf("the command ended with its runner, so this tests nothing: %v %s", err, &stderr)
	}
	left, err := b.Left()
	if err != nil || len(left) != 1 || left[0].Kind != "gate" || b.Owned(left[0].Generation) || !b.Has(left[0].Generation) {
		t.Fatalf("%+v, %v", left, err)
	}
	done, err := b.Sweep(t.Context())
	if err != nil || len(done) != 1 || done[0].Processes == 0 || done[0].Generation != left[0].Generation {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := proc.Identify(hidden); err == nil {
		t.Errorf("%d lives", hidden)
	}
	if !b.Owned(own.Generation) {
		t.Error("a scope of this process was taken for a dead one's")
	}
	var out bytes.Buffer
	if end, err := own.Run(t.Context(), Cmd{Command: "echo $" + team.EnvGen, Dir: dir, Stdout: &out}); err != nil || !end.OK() || out.String() != own.Generation+"\n" {
		t.Errorf("%+v, %v, %q", end, err, &out)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(b.Dir); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// A book neither creates the directory of a deleted team nor guesses about a
// record that it cannot read.
func TestBookBadPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := (Book{Dir: filepath.Join(dir, "gone", "commands")}).Open("hook", dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "gone")); err == nil {
		t.Error("the team's directory was made")
	}
	b := Book{Dir: dir}
	gen := team.NewUUID()
	if err := os.WriteFile(b.file(gen), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if done, err := b.Sweep(t.Context()); err == nil || len(done) != 0 || !b.Owned(gen) {
		t.Errorf("%v, %v", done, err)
	}
	var none Book
	s, err := none.Open("gate", "")
	if err != nil || none.Has(s.Generation) || s.Close() != nil {
		t.Errorf("%v", err)
	}
	if done, err := none.Sweep(t.Context()); err != nil || done != nil {
		t.Errorf("%v, %v", done, err)
	}
}
