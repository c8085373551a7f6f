package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/ledger"
)

func TestTail(t *testing.T) {
	t.Parallel()
	var a tail
	long := strings.Repeat("ä", 3*tailBytes)
	for _, s := range []string{long, "\nlast\n"} {
		if n, err := a.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := a.text(); got != "last" {
		t.Errorf("whole lines where possible: %q", got[:min(len(got), 40)])
	}
	var b tail
	if _, err := b.Write([]byte(long)); err != nil {
		t.Fatal(err)
	}
	if got := b.text(); len(got) > tailBytes || len(got) < tailBytes-4 || !utf8.ValidString(got) {
		t.Errorf("one long line: %d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	var c tail
	if got := c.text(); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

func TestOutputKeepsLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := newOutput(&b)
	o.line("begin")
	if _, err := o.Write([]byte("no newline")); err != nil {
		t.Fatal(err)
	}
	o.line("end %d", 1)
	if got := b.String(); got != "begin\nno newline\nend 1\n" {
		t.Errorf("%q", got)
	}
}

// endsAfter is a context that ends soon after somebody begins to wait for that, once over is true.
type endsAfter struct {
	context.Context
	over func() bool
	end  func()
}

func (c endsAfter) Done() <-chan struct{} {
	if c.over() {
		time.AfterFunc(time.Millisecond, c.end)
	}
	return c.Context.Done()
}

func TestWhoseSignal(t *testing.T) {
	t.Parallel()
	// A stop signals the whole tree: the command may exit before our own context ends, which is
	// not a failure.
	w := &worker{env: Env{Dir: t.TempDir(), Environ: os.Environ(), Grace: time.Second}, out: newOutput(&bytes.Buffer{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := func() bool {
		text, err := os.ReadFile(filepath.Join(w.env.Dir, "pid"))
		pid, no := strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && no == nil && unix.Kill(pid, 0) != nil
	}
	if r := w.command(endsAfter{ctx, ended, cancel}, ledger.Task{ID: "1"}, ofTask, "echo $$ >pid; kill -TERM $$", 0); r.how != byContext {
		t.Errorf("ended %+v", r)
	}
	if r := w.command(t.Context(), ledger.Task{ID: "1"}, ofTask, "kill -TERM $$", 0); r.how != byItself || r.code != 143 || r.sig != "SIGTERM" {
		t.Errorf("ended %+v", r)
	}
}

func TestBashMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	w := &worker{env: Env{Dir: t.TempDir()}, out: newOutput(&bytes.Buffer{})}
	if r := w.command(t.Context(), ledger.Task{ID: "1"}, ofTask, "true", 0); r.how != byError || r.code != 127 || !strings.Contains(r.why(0), "start bash") {
		t.Errorf("ended %+v", r)
	}
}

// TestWithinSeesBoth checks that what has come in time is seen although the time is over as well.
func TestWithinSeesBoth(t *testing.T) {
	t.Parallel()
	there := make(chan struct{})
	close(there)
	for range 1000 {
		if !within(there, 0) {
			t.Fatal("it was there")
		}
	}
}
