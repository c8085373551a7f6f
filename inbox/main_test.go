package inbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The test binary is its own second process: with roleEnv set it is a worker.
const (
	roleEnv = "INBOX_TEST_ROLE"
	dirEnv  = "INBOX_TEST_DIR"
	nameEnv = "INBOX_TEST_NAME"
	loopEnv = "INBOX_TEST_LOOPS"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := work(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(role string) error {
	dir, name := os.Getenv(dirEnv), os.Getenv(nameEnv)
	b, err := Open(filepath.Join(dir, "inboxes"), filepath.Join(dir, "locks"), "bob")
	if err != nil {
		return err
	}
	// Without a deadline an operation gives up a foreign lock after lockWait, which a busy
	// machine may need.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	switch role {
	case "append":
		loops, err := strconv.Atoi(os.Getenv(loopEnv))
		if err != nil {
			return err
		}
		for i := range loops {
			if err := b.Append(ctx, numbered(name, i)); err != nil {
				return err
			}
		}
		return nil
	case "consume":
		// Prints what it consumes until its standard input is closed.
		done := make(chan struct{})
		go func() {
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			close(done)
		}()
		watcher, err := Watch(ctx, filepath.Join(dir, "inboxes"))
		if err != nil {
			return err
		}
		changes := watcher.Changes("bob")
		for last := false; ; {
			got, err := b.Consume(ctx, 3, nil)
			if err != nil {
				return err
			}
			for _, e := range got {
				fmt.Println(e.Text)
			}
			if len(got) > 0 {
				continue
			}
			if last {
				return nil
			}
			select {
			case <-done:
				last = true
			case <-changes:
			}
		}
	case "until-killed":
		for i := 0; ; i++ {
			if err := b.Append(ctx, bulky(name, i)); err != nil {
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) {
					return err
				}
				i--
				continue
			}
			fmt.Println(i) // sent only now
		}
	case "full":
		return fillDisk(b)
	case "in-place":
		loops, err := strconv.Atoi(os.Getenv(loopEnv))
		if err != nil {
			return err
		}
		return rewriteInPlace(b.Path(), name, loops)
	}
	return fmt.Errorf("unknown role %s", role)
}

// fillDisk appends under a file size limit until an append fails, and checks
// that a failed append leaves the file unchanged.
func fillDisk(b *Box) error {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &lim); err != nil {
		return err
	}
	lim.Cur = 10_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &lim); err != nil {
		return err
	}
	for i := range 100 {
		before, err := os.ReadFile(b.Path())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = b.Append(context.Background(), numbered("w", i))
		if err == nil {
			continue
		}
		after, readErr := os.ReadFile(b.Path())
		if readErr != nil {
			return readErr
		}
		if !bytes.Equal(before, after) {
			return fmt.Errorf("the file changed: %d bytes before, %d after %w", len(before), len(after), err)
		}
		if i < 10 || !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("append %d failed early or otherwise: %w", i, err)
		}
		// With space again, the next append succeeds.
		lim.Cur = lim.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &lim); err != nil {
			return err
		}
		return b.Append(context.Background(), numbered("after", i))
	}
	return errors.New("the limit was never reached")
}

func worker(t testing.TB, role, dir, name string, loops int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir, nameEnv+"="+name, loopEnv+"="+strconv.Itoa(loops))
	cmd.Stderr = os.Stderr
	killed(t, cmd)
	return cmd
}

// killed ends the process of a failed test; otherwise it has already exited.
func killed(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
}

func numbered(from string, i int) Entry {
	return Entry{
		From: from, Text: fmt.Sprintf("%s %d: %s", from, i, strings.Repeat("<x> ", i%40)),
		ID: fmt.Sprintf("%s-%d", from, i), Type: "message", Color: "blue",
	}
}

// bulky returns an entry long enough for its write to be torn between two
// pages.
func bulky(from string, i int) Entry {
	e := numbered(from, i)
	e.Text += strings.Repeat("0123456789abcdef", 8000)
	return e
}

func bg(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newBox returns bob's mailbox in a new team directory.
func newBox(t testing.TB) (*Box, string) {
	t.Helper()
	dir := t.TempDir()
	return boxIn(t, dir), dir
}

func boxIn(t testing.TB, dir string) *Box {
	t.Helper()
	b, err := Open(filepath.Join(dir, "inboxes"), filepath.Join(dir, "locks"), "bob")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put writes the mailbox file as another program would.
func put(t testing.TB, b *Box, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, b *Box) string {
	t.Helper()
	data, err := os.ReadFile(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func entries(t testing.TB, b *Box) []Entry {
	t.Helper()
	out, err := b.Entries(bg(t))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func add(t testing.TB, b *Box, es ...Entry) {
	t.Helper()
	for _, e := range es {
		if err := b.Append(bg(t), e); err != nil {
			t.Fatal(err)
		}
	}
}

func textsOf(es []Entry) string {
	var out []string
	for _, e := range es {
		out = append(out, e.Text)
	}
	return strings.Join(out, "|")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

// names lists the names in a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
