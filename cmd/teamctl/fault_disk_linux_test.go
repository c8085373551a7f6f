package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestFault32DiskFull checks that the sender of a message is notified of a full disk, that the
// mailbox is unchanged and no partial file is left, and that sending works again once there is
// space.
func TestFault32DiskFull(t *testing.T) {
	t.Parallel()
	p := newProofOn(t, func(home string) { smallDisk(t, home) }, "box")
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

// TestChatDiskFull checks that a conversation continues once there is space on a full disk: the
// result of a call is recorded then, a line that was taken is answered once, and one that could
// not be taken is refused with the reason, as is a conversation that begins.
func TestChatDiskFull(t *testing.T) {
	t.Parallel()
	p := newProofOn(t, func(home string) { smallDisk(t, home) })
	p.write(filepath.Join(p.dir, "rules.yaml"), []byte("team: t\npermissions:\n  allow:\n    - {tool: shell}\n"))
	p.must("approvals", "rules", "-f", "rules.yaml")
	filler, at, goes := filepath.Join(p.layout.Home.Dir, "filler"), filepath.Join(p.dir, "at"), filepath.Join(p.dir, "goes")

	var stdout, stderr lockedBuffer
	cmd := p.command("chat")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	says := func(line string) {
		t.Helper()
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	waits := func(what string, ok func() bool) {
		t.Helper()
		if !p.until(ok, patience) {
			t.Errorf("no %s\n%s\n%s", what, stdout.String(), stderr.String())
		}
	}
	exists := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	says("@@shell touch " + at + "; until test -e " + goes + "; do sleep 0.05; done; echo the command is over; seq 9000")
	waits("command", func() bool { return exists(at) })
	fill(t, filler)
	says("@@say " + strings.Repeat("refused ", 11_000))
	waits("refusal of a line", func() bool { return strings.Contains(stderr.String(), "free some space") })
	p.write(goes, nil)
	result := `"content":"the command is over`
	export := func() string { return p.must("session", "export", team.LeadName, "--format", "jsonl") }
	waits("attempt to record the result", func() bool { // which may find room in the files of the ledger
		return strings.Contains(stdout.String(), "record the results of calls: ") || strings.Contains(export(), result)
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	says("@@say answered")
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	fill(t, filler)
	begins := p.command("chat", "--once", "--json")
	begins.Stdin = strings.NewReader("@@say too early")
	out, err := begins.Output()
	if code := begins.ProcessState.ExitCode(); code != 7 || !strings.Contains(string(out), "disk_full") || !strings.Contains(string(out), "free some space") {
		t.Errorf("exit status %d, %v: %s", code, err, out)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}

	transcript := export()
	for text, want := range map[string]int{result: 1, `"kind":"assistant","content":"answered"`: 1, `refused refused`: 0, "too early": 0} {
		if n := strings.Count(transcript, text); n != want {
			t.Errorf("%q is in the transcript %d times, want %d:\n%s", text, n, want, transcript)
		}
	}
	p.sound(p.ledger())
}

// lockedBuffer is a buffer for a process that is running.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// smallDisk mounts a disk of 8 MB at a new directory. The test is skipped where it may not.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Skipf("no small disk can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
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
