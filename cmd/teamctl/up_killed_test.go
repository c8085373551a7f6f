package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestUpKilledIsCompleted kills teamctl up after its n-th event in the ledger. The next up
// completes it without duplicates, and the tasks are done. One of the two is the command and the
// other the operation, in alternating order.
func TestUpKilledIsCompleted(t *testing.T) {
	r := newFaultRig(t)
	const members, tasks = 5, 4
	file := "repo: repo\nmembers:\n  - {name: w, backend: in-process, count: 3}\n  - {name: p, backend: pty, count: 2}\ntasks:\n"
	for i := range tasks {
		file += fmt.Sprintf("  - {id: t%d, subject: task %d, run: 'true'}\n", i, i)
	}
	moments := []int64{0, 6, 8, 10, 13}
	rounds := rand.Perm(len(moments))
	if testing.Short() {
		rounds = rounds[:1]
	}
	for _, i := range rounds {
		n := moments[i]
		name := fmt.Sprint("u", n)
		path := filepath.Join(r.dir, name+".yaml")
		if err := os.WriteFile(path, []byte("team: "+name+"\n"+file), 0o600); err != nil {
			t.Fatal(err)
		}
		up := []string{"up", "-f", path}
		call := []string{"call", "TeamUp", fmt.Sprintf(`{"file":%q}`, path)}
		if i%2 == 1 {
			up, call = call, up
		}
		r.upKilledAt(up, name, n)
		r.teamctl(call...)
		r.teamctl("wait", "--team", name, "--timeout", "5m")
		var ps struct{ Members []ledger.Member }
		if err := json.Unmarshal([]byte(r.teamctl("ps", "--team", name, "--json")), &ps); err != nil {
			t.Fatal(err)
		}
		var board struct{ Tasks []ledger.Task }
		if err := json.Unmarshal([]byte(r.teamctl("task", "ls", "--team", name, "--json")), &board); err != nil {
			t.Fatal(err)
		}
		if len(ps.Members) != 1+members || len(board.Tasks) != tasks {
			t.Errorf("after %d events: %d members and %d tasks", n, len(ps.Members)-1, len(board.Tasks))
		}
		for _, m := range ps.Members {
			if m.Name != team.LeadName && m.Observed != team.Running {
				t.Errorf("after %d events: %s is %s", n, m.Name, m.Observed)
			}
		}
		r.teamctl("delete", "--force", "--team", name)
	}
}

// upKilledAt runs an up and kills it once its team's ledger has that many events, unless it exits
// before.
func (r *faultRig) upKilledAt(up []string, name string, events int64) {
	r.Helper()
	cmd := exec.Command(r.exe, up...)
	cmd.Dir, cmd.Env = r.dir, r.env
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed
		close(ended)
	}()
	l := team.Home{Dir: r.dir + "/t"}.Team(name)
	r.until("events of "+name, func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		if _, err := os.Stat(l.Ledger()); err != nil {
			return false
		}
		db, err := ledger.Open(r.Context(), l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
		if err != nil {
			return false
		}
		defer func() { _ = db.Close() }()
		seq, err := ledger.New(db, ledger.Direct(db)).LastEvent(r.Context())
		return err == nil && seq >= events
	})
	_ = cmd.Process.Kill() // it may have exited
	<-ended
}
