package supervisor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// leave starts the command hang as a killed supervisor has left it, and returns the pid of the
// process that it hides.
func (r *rig) leave(gen string) (pid int) {
	r.Helper()
	left := exec.Command("bash", "-c", hang)
	left.Dir, left.Env = r.layout.Dir, append(os.Environ(), team.EnvGen+"="+gen)
	if err := left.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = left.Wait() }()
	r.Cleanup(func() {
		_, _ = proc.KillTree(context.Background(), nil, gen, 0)
		<-ended
	})
	return r.hanging()
}

// Processes of a set-up command or hook of a killed supervisor are ended by the next one.
func TestCommandsLeftByAKilledSupervisor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gen := team.NewUUID()
	pid := r.leave(gen)
	if err := os.Mkdir(r.layout.Commands(), 0o700); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(r.layout.Commands(), gen+".json")
	text := `{"generation":"` + gen + `","kind":"setup","owner":{"bootId":"another","pid":1,"startTicks":1}}`
	if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.supervisor()
	r.gone(pid)
	r.until("the record is removed", func() bool { _, err := os.Lstat(record); return os.IsNotExist(err) })
}
