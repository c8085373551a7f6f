package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestShutdownRequestOfTheGenerationBefore kills the supervisor during a restart, and with it the
// member, which runs in its process or in one of its own. The unanswered shutdown request was for
// the previous generation, and the next one keeps running.
func TestShutdownRequestOfTheGenerationBefore(t *testing.T) {
	for _, backend := range []string{"in-process", "pty"} {
		t.Run(backend, func(t *testing.T) {
			r := newFaultRig(t)
			gate := filepath.Join(r.dir, "gate")
			r.teamctl("spawn", "w", "--agent", "worker", "--backend", backend, "--worktree", "none")
			before := r.state("w", team.Running)
			r.teamctl("task", "add", "first", "--run", "echo >"+gate+".begun; until [ -e "+gate+" ]; do sleep 0.2; done")
			r.until("the worker to be busy", func() bool {
				_, err := os.Stat(gate + ".begun")
				return err == nil
			})
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = r.try(r.exe, "restart", "w") // its supervisor is killed
			}()
			r.until("the worker to be asked", func() bool { return len(r.mail("w")) == 1 })
			r.kill(r.supervisor())
			if backend == "pty" {
				r.kill(r.proc("w").Agent)
				r.kill(r.proc("w").Shim)
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			<-answered
			var after ledger.Member
			r.until("the worker to be there again, and idle", func() bool {
				after = r.members()["w"]
				return after.Generation != before.Generation && (after.Activity == team.Idle || after.Observed.Terminal())
			})
			r.teamctl("task", "add", "second", "--run", "echo >"+gate+".second")
			r.until("the second task to be done", func() bool {
				after = r.members()["w"]
				_, err := os.Stat(gate + ".second")
				return after.Observed.Terminal() || err == nil
			})
			if after.Observed != team.Running {
				t.Errorf("the new generation is %s: %s", after.Observed, after.Reason)
			}
			r.teamctl("shutdown", "w") // it obeys a request of its own
		})
	}
}
