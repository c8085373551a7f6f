package filelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is its own second process: with roleEnv set it is a worker.
const (
	roleEnv = "FILELOCK_TEST_ROLE"
	pathEnv = "FILELOCK_TEST_PATH"
	loopEnv = "FILELOCK_TEST_LOOPS"
)

// The tests of this package are not parallel: some count the descriptors of the
// process and the places in its queue.
func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "count":
		exitWith(countUp(os.Getenv(pathEnv), os.Getenv(loopEnv)))
	case "hold":
		exitWith(holdForever(os.Getenv(pathEnv)))
	case "until":
		exitWith(countUntilEOF(os.Getenv(pathEnv)))
	}
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func worker(t *testing.T, role, path string, more ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, pathEnv+"="+path)
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = os.Stderr
	t.Cleanup(func() { // of a failed test; otherwise it has already exited
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd
}

// countUp reads, increments and writes a number under the lock, so that a lost
// update shows in the sum.
func countUp(path, loops string) error {
	n, err := strconv.Atoi(loops)
	if err != nil {
		return err
	}
	for range n {
		if err := addOne(path); err != nil {
			return err
		}
	}
	return nil
}

func addOne(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, err := Lock(ctx, path+".guard")
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock() }()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	v, err := strconv.Atoi(string(data))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(v+1)), 0o600)
}

func holdForever(path string) error {
	l, err := Lock(context.Background(), path)
	if err != nil {
		return err
	}
	fmt.Println("held")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return nil
	}
	return l.Unlock()
}

// often is how many locks a process must get while others compete for them.
const often = 20

// countUntilEOF takes the lock as often as it can until standard input ends,
// reports when it has done so often enough, and prints the total at its end.
func countUntilEOF(path string) error {
	done := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(done)
	}()
	n := 0
	for {
		select {
		case <-done:
			fmt.Println(n)
			return nil
		default:
		}
		l, err := Lock(context.Background(), path)
		if err != nil {
			return err
		}
		n++
		if err := l.Unlock(); err != nil {
			return err
		}
		if n == often {
			fmt.Println("often")
		}
	}
}

func TestManyProcessesAndGoroutinesLoseNoUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	if err := os.WriteFile(path, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const procs, loops, goroutines = 6, 100, 8
	var cmds []*exec.Cmd
	for range procs {
		cmd := worker(t, "count", path, loopEnv+"="+strconv.Itoa(loops))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range loops {
				if err := addOne(path); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.Itoa((procs + goroutines) * loops); string(got) != want {
		t.Fatalf("counted to %s, want %s", got, want)
	}
	slots.mu.Lock()
	defer slots.mu.Unlock()
	if slots.m[path] != nil {
		t.Fatal("its slot is left behind")
	}
}

func TestFairBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	const procs = 4
	type run struct {
		cmd *exec.Cmd
		in  interface{ Close() error }
		out *bufio.Reader
	}
	var runs []run
	for range procs {
		cmd := worker(t, "until", path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		runs = append(runs, run{cmd, in, bufio.NewReader(out)})
	}
	late := time.AfterFunc(5*time.Minute, func() {
		for _, r := range runs {
			_ = r.cmd.Process.Kill()
		}
	})
	defer late.Stop()
	for i, r := range runs { // while all the others compete for it
		if line, err := r.out.ReadString('\n'); err != nil || line != "often\n" {
			t.Fatalf("process %d starved: %q, %v", i, line, err)
		}
	}
	for _, r := range runs {
		_ = r.in.Close()
	}
	least, most := 1<<30, 0
	for _, r := range runs {
		line, err := r.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := r.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		least, most = min(least, n), max(most, n)
	}
	t.Logf("locks taken by each of %d processes: %d to %d", procs, least, most)
	if least < often {
		t.Errorf("one has got fewer than it says: %d to %d", least, most)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	held, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Unlock() }()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the same process: %v", err)
	}
	cmd := worker(t, "count", strings.TrimSuffix(path, ".guard"), loopEnv+"=0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	done, cancelDone := context.WithCancel(context.Background())
	cancelDone()
	if _, err := Lock(done, filepath.Join(t.TempDir(), "free")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
}

func TestKilledHolderFreesTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	cmd := worker(t, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}

	if _, ok, err := TryLock(path); ok || err != nil {
		t.Errorf("TryLock on a lock held elsewhere: ok=%v err=%v", ok, err)
	}
	if held, err := IsHeld(path); !held || err != nil {
		t.Errorf("IsHeld on a lock held elsewhere: %v, %v", held, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock on a lock held elsewhere: %v", err)
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed above
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("IsHeld after the death: %v, %v", held, err)
	}
	l, ok, err := TryLock(path)
	if !ok || err != nil {
		t.Fatalf("TryLock after the death: ok=%v err=%v", ok, err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	if held, err := IsHeld(path); held || err != nil {
		t.Errorf("IsHeld on a missing file: %v, %v", held, err)
	}
	l, ok, err := TryLock(path)
	if !ok || err != nil {
		t.Fatalf("free: ok=%v err=%v", ok, err)
	}
	if l.File().Name() != path {
		t.Errorf("file is %s", l.File().Name())
	}
	st, err := l.File().Stat()
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", st.Mode())
	}
	if _, ok, err := TryLock(path); ok || err != nil {
		t.Errorf("held: ok=%v err=%v", ok, err)
	}
	for range 2 { // the second call does nothing
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file was unlinked: %v", err)
	}
}

func TestReplacedFileIsLockedAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	old, err := Lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *Held, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		l, err := Lock(ctx, path)
		if err != nil {
			t.Error(err)
		}
		got <- l
	})
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := old.Unlock(); err != nil {
		t.Fatal(err)
	}
	l := <-got
	wg.Wait()
	if l == nil {
		return
	}
	defer func() { _ = l.Unlock() }()
	named, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := l.File().Stat()
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(named, mine) {
		t.Error("locked a file that the path does not name")
	}
}

func TestRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"symlink": link, "directory": dir, "no parent": filepath.Join(dir, "none", "guard"),
	} {
		if l, err := Lock(context.Background(), path); err == nil {
			t.Errorf("%s was locked", name)
			_ = l.Unlock()
		}
		if l, ok, err := TryLock(path); ok || err == nil {
			t.Errorf("%s was locked by TryLock", name)
			_ = l.Unlock()
		}
	}
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the symlink was followed: %v", err)
	}
	slots.mu.Lock() // a wait that an earlier test has abandoned may still have one
	defer slots.mu.Unlock()
	for key := range slots.m {
		if strings.HasPrefix(key, dir) {
			t.Errorf("a slot of %s is left behind", key)
		}
	}
}

func BenchmarkLockUncontended(b *testing.B) {
	path := filepath.Join(b.TempDir(), "guard")
	for b.Loop() {
		l, err := Lock(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}

// An abandoned wait leaves its place to the next Lock of the process, and does
// not hold the lock: TryLock succeeds.
func TestGivenUpPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	other := worker(t, "hold", path)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		return len(entries)
	}
	before := threads()
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
		if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
	}
	if n := threads(); n > before+1 {
		t.Errorf("%d files are open for 20 waits that were given up, not one", n-before)
	}
	got := make(chan error, 1)
	go func() {
		l, err := Lock(context.Background(), path)
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	if err := in.Close(); err != nil { // the other process releases it by exiting
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	l, ok, err := TryLock(path)
	if !ok || err != nil {
		t.Fatalf("after all that: ok=%v err=%v", ok, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Minute)
	for n := 1; n != 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d slots are left behind", n)
		}
		slots.mu.Lock()
		n = len(slots.m)
		slots.mu.Unlock()
	}
}

// TestTryLockAmongProbes checks that a free lock is taken while others ask whether it is
// held.
func TestTryLockAmongProbes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	var stop atomic.Bool
	var probes sync.WaitGroup
	defer probes.Wait()
	defer stop.Store(true)
	for range 3 {
		probes.Go(func() {
			for !stop.Load() {
				if _, err := IsHeld(path); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 300 {
		l, ok, err := TryLock(path)
		if !ok || err != nil {
			t.Fatalf("a free lock: %v, %v", ok, err)
		}
		if _, again, err := TryLock(path); again || err != nil {
			t.Fatalf("a held one: %v, %v", again, err)
		}
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}
