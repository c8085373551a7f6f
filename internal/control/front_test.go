package control

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A socket that is deleted under a living supervisor, alone or with its whole
// directory, is there again for the next who wants it: with the same supervisor.
func TestDeletedSocketComesBack(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	st, err := dial(t, l).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Socket(), l.Runtime(), l.Socket()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		again, err := dial(t, l).Status(t.Context())
		if err != nil {
			t.Fatalf("after the loss of %s: %v", path, err)
		}
		if again.PID != st.PID {
			t.Errorf("supervisor %d took the place of %d", again.PID, st.PID)
		}
		if fi, err := os.Stat(l.Socket()); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("the new socket: %v, %v", fi, err)
		}
	}
	if err := dial(t, l).Quit(t.Context(), false); err != nil && team.ReasonOf(err) != "supervisor_gone" {
		t.Fatal(err)
	}
	waitGone(t, l)
	if _, err := os.Stat(l.Socket()); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}
