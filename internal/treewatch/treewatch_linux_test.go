package treewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTellsOncePerArm checks that the first change in a directory is reported
// with the key of its tree, later ones only after it is armed again, and those
// in a dropped tree not at all.
func TestTellsOncePerArm(t *testing.T) {
	t.Parallel()
	told := make(chan string, 100)
	w, err := New(func(key string) { told <- key })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		w.Close()
		<-w.Done()
	}()
	a, b := t.TempDir(), t.TempDir()
	sub := filepath.Join(a, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(key, what string) {
		t.Helper()
		select {
		case k := <-told:
			if k != key {
				t.Fatalf("%s: told of %q, want %q", what, k, key)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s: nothing told", what)
		}
	}
	arm := func(key string, dirs ...string) {
		t.Helper()
		if err := w.Arm(key, dirs); err != nil {
			t.Fatal(err)
		}
	}
	arm("a", a, sub, filepath.Join(a, "gone"))
	arm("b", b)
	write(filepath.Join(sub, "one"))
	want("a", "a file in a subdirectory")
	for range 50 {
		write(filepath.Join(sub, "one")) // not armed: the next report is for the other tree
	}
	write(filepath.Join(b, "one"))
	want("b", "a file in the other tree")

	arm("a", a, sub)
	if err := os.Remove(filepath.Join(sub, "one")); err != nil {
		t.Fatal(err)
	}
	want("a", "armed again, a file removed")

	w.Drop("a")
	write(filepath.Join(a, "two"))
	arm("b", b)
	if err := os.Chmod(filepath.Join(b, "one"), 0o644); err != nil { // its mode is what changes
		t.Fatal(err)
	}
	want("b", "a mode, after the other tree was dropped")
}

// TestClosedWatch checks that arming a closed watch returns an error.
func TestClosedWatch(t *testing.T) {
	t.Parallel()
	w, err := New(func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-w.Done()
	if err := w.Arm("a", []string{t.TempDir()}); err == nil {
		t.Error("armed after it was closed")
	}
	w.Drop("a")
}
