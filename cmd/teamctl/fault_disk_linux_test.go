package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFault32DiskFull checks that the sender of a message is notified of a full disk, that the
// mailbox is unchanged and no partial file is left, and that sending works again once there is
// space.
func TestFault32DiskFull(t *testing.T) {
	t.Parallel()
	p := newProofOn(t, func(home string) {
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", home, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
			t.Skipf("no small disk can be made here: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(home, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}, "box")
	p.must("send", "box", "before")
	file := p.box("box").Path()
	before := p.read(file)

	filler := filepath.Join(p.layout.Home.Dir, "filler")
	fill(t, filler)
	long := strings.Repeat("x", 90_000)
	status, out := p.status("send", "box", long, "--json")
	if status != 7 || !strings.Contains(out, `"hint"`) {
		t.Errorf("exit status %d: %s", status, out)
	}
	if !strings.Contains(out, "disk_full") && !strings.Contains(out, `"io"`) {
		t.Errorf("no reason: %s", out)
	}
	if !bytes.Equal(p.read(file), before) {
		t.Error("the mailbox was changed")
	}
	if status, out := p.status("task", "add", "a task", "--description", strings.Repeat("y", 9_000)); status == 0 {
		t.Logf("a small write found room: %s", out)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.must("send", "box", "after")
	if got := p.texts("box"); got != "before after" {
		t.Errorf("the mailbox has %.100q", got)
	}
	for _, dir := range []string{p.layout.Inboxes(), p.layout.Dir, p.layout.Locks()} {
		left, err := filepath.Glob(filepath.Join(dir, ".*.tmp-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	p.sound(p.ledger())
}

// fill writes to a file until there is no space.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}
