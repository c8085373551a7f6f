package ledger

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// children are the functions that the test binary runs as a child process.
var children = map[string]func(args []string) error{
	"worker": childWorker,
	"event":  childEvent,
	"revise": childRevise,
}

// child starts the test binary as another process; the test waits for it.
func child(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), envChild+"="+name, "GORACE=halt_on_error=1")
	cmd.Stderr = os.Stderr
	t.Cleanup(func() { // of a failed test; otherwise it has already exited
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd
}

// openChild opens the ledger in a child process; mode is "group" for a
// supervisor's writer, which must be stopped.
func openChild(ctx context.Context, path, mode string) (l *Ledger, stop func(), err error) {
	db, err := Open(ctx, path, Options{BusyTimeout: 30 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	if mode != "group" {
		return New(db, Direct(db)), func() {}, nil
	}
	g := NewGroup(db)
	if err := g.Start(ctx); err != nil {
		return nil, nil, err
	}
	return New(db, g), func() { _ = g.Stop(context.Background()) }, nil
}

// childWorker claims and completes tasks of the ledger at args[0] as session
// args[1] until all are done. Mode args[2] is "group" for a supervisor's writer
// in this process, "hang" to stop while holding the third claim, otherwise "".
// Only that claim has a short lease: a busy machine holds up a claim that is
// worked on.
func childWorker(args []string) error {
	path, session, mode := args[0], args[1], args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	l, stopGroup, err := openChild(ctx, path, mode)
	if err != nil {
		return err
	}
	defer stopGroup()
	wakes, stop, err := l.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for claims := 1; ; claims++ {
		lease, hangs := time.Hour, mode == "hang" && claims >= 3
		if hangs {
			lease = 300 * time.Millisecond
		}
		task, err := l.Claim(ctx, ClaimIn{Owner: session, Lease: lease})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if task == nil {
			n, err := l.Counts(ctx)
			if err != nil {
				return err
			}
			if n.Completed == n.Total() {
				return l.db.Close()
			}
			select {
			case <-wakes:
			case <-time.After(150 * time.Millisecond): // a lease may expire without a write
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if hangs {
			fmt.Println("hanging")
			<-ctx.Done()
		}
		r := TaskRef{task.ID, session, task.Attempt}
		if _, err := l.Complete(ctx, r, Result{Summary: session}); err != nil {
			return fmt.Errorf("complete %s: %w", task.ID, err)
		}
	}
}

// layered returns a batch of n tasks in which each depends on one or two
// earlier ones.
func layered(n int) []NewTask {
	batch := make([]NewTask, n)
	for i := range batch {
		batch[i] = NewTask{Ref: "t" + strconv.Itoa(i), Subject: "s", Priority: i % 3}
		if i >= 10 {
			batch[i].DependsOn = []string{"t" + strconv.Itoa(i-10), "t" + strconv.Itoa(i/2)}
		}
	}
	return batch
}

// Eight processes compete for 200 tasks: each task is completed once, in the
// order of its dependencies, and without an error; also if some processes are
// killed, and if one of them writes in groups.
func TestProcessesRace(t *testing.T) {
	t.Parallel()
	tasks := 200
	if testing.Short() {
		tasks = 60
	}
	for _, tt := range []struct {
		name  string
		modes [8]string
		kill  int
	}{
		{name: "direct"},
		{name: "direct and groups at once", modes: [8]string{0: "group", 4: "group"}},
		{name: "kill -9", modes: [8]string{0: "hang", 1: "hang", 2: "hang"}, kill: 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := New(openAt(t, path), nil)
			l.w = Direct(l.db)
			must[[]Task](t)(l.CreateTasks(ctxFor(t), layered(tasks), "lead"))
			race(t, path, tt.modes, tt.kill)
			checkRace(t, l, tt.kill > 0)
		})
	}
}

// race runs the processes; the first kill of them are killed while they hold a
// task.
func race(t *testing.T, path string, modes [8]string, kill int) {
	t.Helper()
	type proc struct {
		cmd *exec.Cmd
		out io.Reader
	}
	var procs []proc
	for i, mode := range modes {
		cmd := child(t, "worker", path, "s"+strconv.Itoa(i), mode)
		pipe, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		procs = append(procs, proc{cmd, pipe})
		if i < kill { // it has its task before the others can take them all
			if _, err := io.ReadFull(pipe, make([]byte, len("hanging"))); err != nil {
				t.Errorf("process %d holds no task: %v", i, err)
			}
		}
	}
	for _, p := range procs[:kill] {
		ok(t, p.cmd.Process.Kill())
	}
	for i, p := range procs {
		_, err := io.Copy(io.Discard, p.out)
		ok(t, err)
		if err := p.cmd.Wait(); err != nil && i >= kill {
			t.Errorf("process %d: %v", i, err)
		}
	}
}

func checkRace(t *testing.T, l *Ledger, again bool) {
	t.Helper()
	ctx := ctxFor(t)
	tasks := must[[]Task](t)(l.Tasks(ctx, TaskFilter{}))
	done := map[string]int64{}
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: "task.completed"})) {
		if done[e.ID] != 0 {
			t.Errorf("task %s was completed twice", e.ID)
		}
		done[e.ID] = e.Seq
	}
	claims := map[string]int{}
	for _, e := range must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: "task.claimed"})) {
		claims[e.ID]++
		for _, dep := range tasks[seqOf(t, e.ID)-1].DependsOn {
			if done[dep] == 0 || done[dep] > e.Seq {
				t.Errorf("task %s was claimed before %s was completed", e.ID, dep)
			}
		}
	}
	for _, task := range tasks {
		if task.Status != team.TaskCompleted || task.Result == nil || task.Result.Summary != task.Owner {
			t.Errorf("%+v", task)
		}
		if claims[task.ID] != task.Attempt || !again && task.Attempt != 1 {
			t.Errorf("task %s: %d claims, attempt %d", task.ID, claims[task.ID], task.Attempt)
		}
	}
	sound(t, l)
}

func seqOf(t *testing.T, id string) int {
	t.Helper()
	return must[int](t)(strconv.Atoi(id))
}
