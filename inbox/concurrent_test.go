package inbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSixteenProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	const procs, each = 16, 50
	b, dir := newBox(t)
	var cmds []*exec.Cmd
	for p := range procs {
		cmd := worker(t, "append", dir, fmt.Sprintf("w%d", p), each)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	inOrder(t, entries(t, b), procs*each)
}

// inOrder checks that there are n entries and that each sender's entries are in
// sequence.
func inOrder(t *testing.T, all []Entry, n int) {
	t.Helper()
	if len(all) != n {
		t.Errorf("%d entries, want %d", len(all), n)
	}
	next := map[string]int{}
	for _, e := range all {
		if want := numbered(e.From, next[e.From]); e.Text != want.Text || e.ID != want.ID {
			t.Fatalf("entry %d of %s is %q", next[e.From], e.From, e.Text)
		}
		next[e.From]++
	}
}

func TestProcessesAndGoroutinesTogether(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 40
	b, dir := newBox(t)
	cmd := worker(t, "append", dir, "other", each)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shared := boxIn(t, dir)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			box := shared
			if g%2 == 1 {
				box = boxIn(t, dir)
			}
			for i := range each {
				if err := box.Append(bg(t), numbered(fmt.Sprintf("g%d", g), i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	inOrder(t, entries(t, b), (goroutines+1)*each)
}

// With four consumers and four senders, exactly one consumer gets each message.
func TestEachMessageIsConsumedOnce(t *testing.T) {
	t.Parallel()
	const senders, each, consumers = 4, 50, 4
	_, dir := newBox(t)
	type consumer struct {
		cmd *exec.Cmd
		end func() error
		got chan []string
	}
	var cs []consumer
	for range consumers {
		cmd := worker(t, "consume", dir, "", 0)
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
		c := consumer{cmd, in.Close, make(chan []string, 1)}
		go func() {
			var lines []string
			for sc := bufio.NewScanner(out); sc.Scan(); {
				lines = append(lines, sc.Text())
			}
			c.got <- lines
		}()
		cs = append(cs, c)
	}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			if err := worker(t, "append", dir, fmt.Sprintf("s%d", s), each).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, c := range cs {
		if err := c.end(); err != nil {
			t.Error(err)
		}
		for _, line := range <-c.got {
			seen[line]++
		}
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	for s := range senders {
		for i := range each {
			if text := numbered(fmt.Sprintf("s%d", s), i).Text; seen[text] != 1 {
				t.Errorf("%q was consumed %d times", text, seen[text])
			}
		}
	}
}

// Writers are killed in the middle of large writes: every message reported as
// sent is in the file, the file is readable or reports a repair, and the lock
// is free.
func TestKilledWritersLoseNothingThatWasSent(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	sent := map[string]int{}
	torn := 0
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		name := fmt.Sprintf("k%d", round)
		cmd := worker(t, "until-killed", dir, name, 0)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for n := 0; ; n++ {
			line, err := lines.ReadString('\n')
			if err != nil {
				break // killed
			}
			last, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			sent[name] = last + 1
			if n == 3+round%4 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed above
		if _, err := b.Entries(bg(t)); err != nil {
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || !corrupt.Torn {
				t.Fatal(err)
			}
			torn++
		}
		if _, err := b.Consume(bg(t), 0, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Prune(bg(t), 40, nil); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, e := range entries(t, b) {
			if e.Text != bulky(e.From, count[e.From]).Text && e.From == name {
				t.Fatalf("entry %d of %s is damaged", count[e.From], e.From)
			}
			count[e.From]++
		}
		if count[name] < sent[name] {
			t.Errorf("%s sent %d messages, %d are there", name, sent[name], count[name])
		}
	}
	t.Logf("%d of %d kills tore the file", torn, rounds)
}

func TestFullDiskLeavesTheMailboxIntact(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	if err := worker(t, "full", dir, "", 0).Run(); err != nil {
		t.Fatal(err)
	}
	all := entries(t, b)
	if len(all) < 10 || all[len(all)-1].From != "after" {
		t.Errorf("%d entries, the last from %s", len(all), all[len(all)-1].From)
	}
	if got := names(t, filepath.Join(dir, "inboxes")); len(got) != 1 {
		t.Errorf("litter: %q", got)
	}
}

const pythonWriter = `
import json, os, sys, time
path, name, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
lock = path + ".lock"
for i in range(n):
    while True:
        try:
            os.mkdir(lock)
            break
        except FileExistsError:
            time.sleep(0.001)
    with open(path) as f:
        box = json.load(f)
    box.append({"from": name, "text": "%s %d" % (name, i), "timestamp": "t", "read": False})
    tmp = path + "." + name + ".tmp"
    with open(tmp, "w") as f:
        json.dump(box, f, indent=2)
    os.rename(tmp, path)
    os.rmdir(lock)
`

// Beside a second implementation that rewrites the whole file under the foreign
// lock, nothing is lost.
func TestSharedWithAForeignWriter(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	b, dir := newBox(t)
	put(t, b, "[]")
	const each = 40
	foreign := exec.Command(python, "-c", pythonWriter, b.Path(), "py", strconv.Itoa(each))
	foreign.Stderr = os.Stderr
	killed(t, foreign)
	ours := worker(t, "append", dir, "go", each)
	for _, cmd := range []*exec.Cmd{foreign, ours} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	var got []Entry
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { // a concurrent consumer
		for last := false; ; {
			es, err := b.Consume(bg(t), 0, nil)
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, es...)
			if last {
				return
			}
			select {
			case <-stop:
				last = true
			case <-time.After(5 * time.Millisecond): // the test covers polling
			}
		}
	})
	for _, cmd := range []*exec.Cmd{foreign, ours} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	seen := map[string]int{}
	for _, e := range got {
		seen[e.Text]++
	}
	for i := range each {
		for _, text := range []string{fmt.Sprintf("py %d", i), numbered("go", i).Text} {
			if seen[text] != 1 {
				t.Errorf("%q was consumed %d times", text, seen[text])
			}
		}
	}
	if n := len(entries(t, b)); n != 2*each {
		t.Errorf("%d entries, want %d", n, 2*each)
	}
	if !json.Valid([]byte(content(t, b))) {
		t.Error("not JSON")
	}
	if got := names(t, filepath.Join(dir, "inboxes")); len(got) != 1 {
		t.Errorf("litter: %q", got)
	}
}

// Two foreign programs and teamctl write while it prunes: no unread message is
// lost, and each read message was either removed or is in the file, once.
func TestPruneBesideAForeignWriter(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	b, dir := newBox(t)
	put(t, b, "[]")
	const each, keep = 60, 10
	foreign := exec.Command(python, "-c", pythonWriter, b.Path(), "py", strconv.Itoa(each))
	foreign.Stderr = os.Stderr
	killed(t, foreign)
	ours := worker(t, "append", dir, "go", each)
	done := make(chan error, 2)
	for _, cmd := range []*exec.Cmd{foreign, ours} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { done <- cmd.Wait() }()
	}
	read, gone := map[string]int{}, map[string]int{}
	round := func() {
		es, err := b.Consume(bg(t), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			read[e.Text]++
		}
		if _, err := b.Prune(bg(t), keep, func(es []Entry) error {
			for _, e := range es {
				gone[e.Text]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for left := 2; left > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			left--
		default:
			round()
		}
	}
	round()
	left := entries(t, b)
	for _, e := range left {
		gone[e.Text]++
	}
	for i := range each {
		for _, text := range []string{fmt.Sprintf("py %d", i), numbered("go", i).Text} {
			if read[text] != 1 || gone[text] != 1 {
				t.Errorf("%q was read %d times and stands in %d places", text, read[text], gone[text])
			}
		}
	}
	if len(left) != keep {
		t.Errorf("%d entries are left, want %d", len(left), keep)
	}
}
