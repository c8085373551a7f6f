package main

import (
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestRenameRestartIsKilled kills rename --restart with SIGKILL at some moment, every other time
// with the supervisor. The member has one of the two names, with its session and its mail, and
// the same command completes the rename.
func TestRenameRestartIsKilled(t *testing.T) {
	rounds := 12
	moment := func(i int) time.Duration { return time.Duration(i*i) * 10 * time.Millisecond }
	if testing.Short() {
		rounds, moment = 2, func(int) time.Duration { return rand.N(300 * time.Millisecond) }
	}
	r := newFaultRig(t)
	r.agent("w0", "never", "fakeagent", "hold")
	before := r.state("w0", team.Running)
	r.send("w0", "kept through all names")
	for i := range rounds {
		was, name := "w"+strconv.Itoa(i), "w"+strconv.Itoa(i+1)
		cmd := exec.Command(r.exe, "rename", "--restart", was, name)
		cmd.Dir, cmd.Env = r.dir, r.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended: // it was faster
		case <-time.After(moment(i)): // any moment will do
			if i%2 == 1 {
				r.kill(r.supervisor())
			}
			_ = cmd.Process.Kill() // it may have exited
			<-ended
		}
		var m ledger.Member
		r.until("one member with one of the names", func() bool {
			all := r.members()
			old, new := all[was], all[name]
			m = old
			if new.Name != "" {
				m = new
			}
			return len(all) == 1 && (old.Name == "") != (new.Name == "")
		})
		if m.SessionKey != before.SessionKey {
			t.Fatalf("%s has session %s, want %s", m.Name, m.SessionKey, before.SessionKey)
		}
		r.until("the same command to do the rest", func() bool {
			_, err := r.try(r.exe, "rename", "--restart", was, name)
			if code := exitCode(err); code == 2 || code == 3 || code == 5 { // other codes: the stop, rename or start of the killed one is still in progress
				t.Fatal(err)
			}
			return err == nil
		})
		if m := r.state(name, team.Running); m.SessionKey != before.SessionKey {
			t.Fatalf("%s has session %s, want %s", name, m.SessionKey, before.SessionKey)
		}
		if n := strings.Count(r.teamctl("inbox", name), "kept through all names"); n != 1 {
			t.Fatalf("%s has the message %d times", name, n)
		}
	}
}
