package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestStopOrderOutlivesItsSupervisor kills the supervisor when it has asked a busy member to exit
// and has no answer yet. The order is still carried out, however it was given, with its
// consequences for the roster.
func TestStopOrderOutlivesItsSupervisor(t *testing.T) {
	for _, c := range []struct {
		name, backend string
		order         []string
		leaves        bool // the member leaves the roster
	}{
		{"stop", "pty", []string{"stop", "w"}, false},
		{"stop in-process", "in-process", []string{"stop", "w"}, false},
		{"shutdown", "pty", []string{"shutdown", "w"}, true},
		{"message", "pty", []string{"call", "SendMessage", `{"type":"shutdown_request","recipient":"w","content":"done"}`}, true},
		{"message in-process", "in-process", []string{"call", "SendMessage", `{"type":"shutdown_request","recipient":"w","content":"done"}`}, true},
	} {
		if testing.Short() && (c.name == "stop in-process" || c.name == "message") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := newFaultRig(t)
			gate := filepath.Join(r.dir, "gate")
			r.teamctl("spawn", "w", "--agent", "worker", "--backend", c.backend, "--worktree", "none")
			before := r.state("w", team.Running)
			r.teamctl("task", "add", "first", "--run", "echo >"+gate+".begun; until [ -e "+gate+" ]; do sleep 0.2; done")
			r.until("the worker to be busy", func() bool {
				_, err := os.Stat(gate + ".begun")
				return err == nil
			})
			told := make(chan struct{})
			go func() {
				defer close(told)
				_, _ = r.try(append([]string{r.exe}, c.order...)...) // its supervisor is killed
			}()
			r.until("the worker to be asked", func() bool { return len(r.mail("w")) == 1 })
			r.kill(r.supervisor())
			<-told
			r.agent("other", "never", "fakeagent", "hold") // starts the next supervisor
			// The member may finish its task, which takes longer than a stop would wait.
			if strings.HasPrefix(c.name, "message") && c.backend == "pty" {
				if m := r.members()["w"]; m.Observed != team.Running || m.StopOrder == nil || m.StopOrder.Wait != (10*time.Minute).Milliseconds() {
					t.Errorf("%s, %+v", m.Observed, m.StopOrder)
				}
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var after ledger.Member
			r.until("the worker to have ended", func() bool {
				m, there := r.members()["w"]
				after = m
				return there != c.leaves && (!there || m.Observed.Terminal())
			})
			if !c.leaves && (after.Observed != team.Completed || after.Generation != before.Generation) {
				t.Errorf("it is %s (%s), generation %s after %s", after.Observed, after.Reason, after.Generation, before.Generation)
			}
		})
	}
}
