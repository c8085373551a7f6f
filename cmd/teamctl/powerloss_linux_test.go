package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// TestFault34PowerLossOrder checks that the ledger is synced before a sender gets an answer. It
// traces system calls, since a test cannot cut the power: a write to the ledger's log makes it
// dirty and a sync makes it clean, and no answer may be sent while it is dirty.
func TestFault34PowerLossOrder(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace")
	}
	p := newProof(t, "box")
	trace := func(name string, args ...string) (*exec.Cmd, string) {
		file := filepath.Join(p.dir, name)
		cmd := p.command()
		cmd.Path = strace
		cmd.Args = append([]string{"strace", "-f", "-y", "-s", "16", "-o", file,
			"-e", "trace=write,pwrite64,sendto,fsync,fdatasync", p.bin}, args...)
		return cmd, file
	}
	direct, file := trace("direct", "send", "box", "one")
	if out, err := direct.CombinedOutput(); err != nil {
		t.Skipf("programs cannot be traced here: %v: %s", err, out)
	}
	answers := syncedBefore(t, file, regexp.MustCompile(`\b(write|sendto)\(1<`))
	if answers == 0 {
		t.Error("the sender was told nothing")
	}

	sup, file := trace("supervisor", "supervise", "--team", "t")
	if err := sup.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			for _, pid := range strays.Below(p.dir)() {
				if args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && strings.HasPrefix(string(args), p.bin) {
					_ = syscall.Kill(pid, syscall.SIGTERM)
				}
			}
			_ = sup.Wait()
		}
	}
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if _, err := os.Stat(p.layout.Socket()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the supervisor does not listen")
		}
	}
	const messages = 5
	for range messages {
		p.must("send", "box", "two")
	}
	stop()
	// An answer is a frame that begins with its length, so with two zeros, followed by its kind. A
	// sender has one for its message and, unless the mailbox was not free in time, one for the mail.
	if n := syncedBefore(t, file, regexp.MustCompile(`\b(write|sendto)\([0-9]+<[^>]*>?.*, "\\0\\0`)); n < messages {
		t.Errorf("the supervisor answered %d times, want at least %d", n, messages)
	}
}

// syncedBefore reads a trace and reports answers that were sent between a write to the log and
// its sync. It returns the number of answers after the first sync.
func syncedBefore(t *testing.T, file string, answer *regexp.Regexp) (answers int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wal := func(line, call string) bool {
		_, rest, ok := strings.Cut(line, call+"(")
		return ok && strings.Contains(rest, "ledger.db-wal>")
	}
	dirty, synced := "", 0
	resumed := map[string]bool{} // threads inside a sync
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		tid, _, _ := strings.Cut(line, " ")
		switch {
		case wal(line, "pwrite64") || wal(line, "write"):
			dirty = line
		case wal(line, "fdatasync") || wal(line, "fsync"):
			if strings.HasSuffix(line, "<unfinished ...>") {
				resumed[tid] = true
				continue
			}
			dirty = ""
			synced++
		case strings.Contains(line, "sync resumed") && resumed[tid]:
			delete(resumed, tid)
			dirty = ""
			synced++
		case strings.Contains(line, `\1{\"code`): // an error: it says that nothing was written
		case synced > 0 && answer.MatchString(line):
			answers++
			if dirty != "" {
				t.Errorf("answered\n%s\nbefore the sync after\n%s", line, dirty)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if synced == 0 {
		t.Error("the ledger's log was never synced")
	}
	return answers
}
