package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
)

// patient returns a pager that a busy machine may take long for.
func patient(argv ...string) pager {
	p := newPager(argv)
	p.within = 10 * time.Minute
	return p
}

// TestPagerRuns checks what a person's pager gets and gives, and that one that is missing or fails is named.
func TestPagerRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv []string
		want string // of the lines or the error
	}{
		{[]string{"cat"}, "+a|+b"},
		{[]string{"sh", "-c", `printf '\033[31mred\nstill\033[0m\033]0;x\007\033[2J'; exec cat >/dev/null`}, "\x1b[0;31mred\x1b[0m|\x1b[0;31mstill\x1b[0m"},
		{[]string{"sh", "-c", `echo "$COLUMNS $PAGER $1"`, "sh", `$HOME "x`}, `72 cat $HOME "x`},
		{[]string{"sh", "-c", "tty </dev/tty || echo no terminal"}, "no terminal"},
		{[]string{"true"}, ""},
		{[]string{"sh", "-c", "echo no such theme >&2; echo out; exit 2"}, "sh: exit 2: no such theme"},
		{[]string{"no-such-pager"}, "no-such-pager cannot be run: executable file not found in $PATH"},
	} {
		lines, err := patient(c.argv...).page(t.Context(), "+a\n+b\n", 72)
		got := strings.Join(lines, "|")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q gives %q, want %q", c.argv, got, c.want)
		}
	}
	long := patient("sh", "-c", "yes | head -c 10000")
	long.most = 1000
	lines, err := long.page(t.Context(), "", 72)
	if err != nil || len(lines) != 501 || !strings.Contains(lines[len(lines)-1], "the rest is left out") {
		t.Errorf("%d lines of a long output, %v", len(lines), err)
	}
}

// TestPagerIsEnded checks that a pager ends with its context, with what it has started.
func TestPagerIsEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := patient("sh", "-c", `sleep 1000 & echo $! >"$0.new"; mv "$0.new" "$0"; wait`, file).page(ctx, "+a\n", 80)
		done <- err
	}()
	var pid int
	for pid == 0 {
		select {
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		data, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	child, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a pager that was ended has no error")
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("it goes on")
	}
	if proc.Alive(child) {
		t.Error("what it has started lives")
	}
}

// TestPagerEnv checks that the environment has each variable once.
func TestPagerEnv(t *testing.T) {
	t.Parallel()
	env := pagerEnv([]string{"PAGER=less", "HOME=/h", "COLUMNS=1"}, 90)
	slices.Sort(env)
	if want := []string{"BAT_PAGER=", "COLUMNS=90", "DELTA_PAGER=cat", "HOME=/h", "PAGER=cat"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
}
