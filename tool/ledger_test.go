package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A recovery that is killed at any step can be repeated: the log of the damaged ledger, which has a
// task that its database does not have, is neither lost nor taken for the new file's.
func TestRecoverKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"recover-built", "recover-kept", "recover-removed", "recover-removed-wal", "recover-removed-shm", "recover-placed"} {
		t.Run(step, func(t *testing.T) {
			e := &Env{Home: team.Home{Dir: t.TempDir()}}
			l := e.Home.Team("demo")
			damaged := damagedTeam(t, e)
			cmd := creator(e.Home.Dir, step, "recover")
			out, _ := cmd.CombinedOutput()
			if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
				t.Fatalf("not killed: %s", out)
			}
			if step != "recover-placed" && !lostLedger(l) {
				for end, data := range damaged {
					if now, err := os.ReadFile(l.Ledger() + end); err != nil || !bytes.Equal(now, data) {
						t.Errorf("the ledger's %q has changed: %v", end, err)
					}
				}
			}
			got, err := e.LedgerRecover(t.Context(), Person(), "demo")
			if want := "recovered"; err != nil || (got.Status == want) == (step == "recover-placed") {
				t.Fatalf("%+v, %v", got, err)
			}
			if check, err := e.LedgerCheck(t.Context(), "demo"); err != nil || len(check.Problems) > 0 {
				t.Errorf("%+v, %v", check, err)
			}
			tm, err := e.Open(t.Context(), "demo")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tm.Close() }()
			var subjects []string
			tasks, err := tm.Ledger.Tasks(t.Context(), ledger.TaskFilter{})
			for _, task := range tasks {
				subjects = append(subjects, task.Subject)
			}
			if err != nil || !slices.Equal(subjects, []string{"in the database", "in the log"}) {
				t.Errorf("tasks %q, %v", subjects, err)
			}
			kept, _ := filepath.Glob(l.Ledger() + ledger.DamagedMark + "*")
			kept = slices.DeleteFunc(kept, func(name string) bool { return strings.HasSuffix(name, "-shm") })
			if len(kept) != 2 {
				t.Fatalf("kept: %q", kept)
			}
			for _, end := range []string{"", "-wal"} {
				if now, err := os.ReadFile(strings.TrimSuffix(kept[0], "-wal") + end); err != nil || !bytes.Equal(now, damaged[end]) {
					t.Errorf("the kept %q differs: %v", end, err)
				}
			}
		})
	}
}

// A recovery names what it could not read: its mail may be lost.
func TestRecoverNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	e := &Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	l := e.Home.Team("demo")
	box := filepath.Join(l.Inboxes(), team.LeadName+".json")
	if err := errors.Join(os.Remove(l.Ledger()), os.RemoveAll(box), os.MkdirAll(box, 0o700)); err != nil {
		t.Fatal(err)
	}
	got, err := e.LedgerRecover(t.Context(), Person(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	says := func(list []string, what string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, what+" could not be read: ") })
	}
	if !says(got.Missing, "the mailbox of "+team.LeadName) {
		t.Errorf("missing: %q", got.Missing)
	}
	if err := os.WriteFile(l.Config(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := findTeam(t.Context(), l); !says(f.Unread, "config.json") || f.Team != nil {
		t.Errorf("%+v", f)
	}
}

// damagedTeam creates the team "demo" with a task in the database of its ledger, which is damaged,
// and one in the log, and returns the two files. The ledger
// stays open, as by a member's server, until the test ends.
func damagedTeam(t *testing.T, e *Env) map[string][]byte {
	t.Helper()
	if _, err := e.TeamCreate(t.Context(), Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := e.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tm.Close() }) // the last one to close it moves the log into the database
	add := func(subject string) {
		if _, err := tm.TaskAdd(t.Context(), Person(), TaskAddIn{Tasks: newTasks(subject)}); err != nil {
			t.Fatal(err)
		}
	}
	add("in the database")
	if err := tm.Ledger.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	add("in the log")
	const page = 4096
	files := map[string][]byte{}
	for _, end := range []string{"", "-wal"} {
		if files[end], err = os.ReadFile(tm.Layout.Ledger() + end); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Contains(files[""], []byte("in the log")) || !bytes.Contains(files["-wal"], []byte("in the log")) {
		t.Fatal("the log does not have the second task alone")
	}
	// A page that the log does not have in a newer version.
	newer := map[uint32]bool{}
	for at := 32; at+24 <= len(files["-wal"]); at += 24 + page {
		newer[binary.BigEndian.Uint32(files["-wal"][at:])] = true
	}
	no := uint32(2)
	for newer[no] {
		no++
	}
	copy(files[""][(no-1)*page:], bytes.Repeat([]byte{0x5a}, page))
	f, err := os.OpenFile(tm.Layout.Ledger(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(files[""], 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return files
}
