package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestProofSecondImplementation checks that a client in another language, written from
// docs/protocol.md alone, can send and take mail while the real program sends. Nothing is lost or
// duplicated, the order of each sender is kept, and no file is damaged.
func TestProofSecondImplementation(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	script, err := filepath.Abs("testdata/protocol/mailbox.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newProof(t, "box")
	theirs, ours, each := 4, 4, 15
	if testing.Short() {
		ours, each = 3, 8
	}
	client := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := exec.Command(python, append([]string{script, p.layout.Dir, "box"}, args...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &out
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%v: %w: %s", args, err, out.String())
		}
		return out.String(), nil
	}
	p.must("send", "box", "start-00") // creates the directories
	var wg sync.WaitGroup
	for w := range theirs {
		wg.Go(func() {
			if _, err := client("send", fmt.Sprintf("py%d", w), fmt.Sprint(each)); err != nil {
				t.Error(err)
			}
		})
	}
	for w := range ours {
		wg.Go(func() {
			for i := range each {
				if _, _, err := p.run(0, "send", "box", fmt.Sprintf("go%d-%02d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	taken := make(chan string, 1)
	wg.Go(func() {
		out, err := client("take", fmt.Sprint((theirs+ours)*each+1))
		if err != nil {
			t.Error(err)
		}
		taken <- out
	})
	wg.Wait()
	want := map[string]string{"start": "00 "}
	for i := range each {
		for w := range theirs {
			want[fmt.Sprintf("py%d", w)] += fmt.Sprintf("%02d ", i)
		}
		for w := range ours {
			want[fmt.Sprintf("go%d", w)] += fmt.Sprintf("%02d ", i)
		}
	}
	for where, texts := range map[string][]string{
		"the mailbox":         strings.Fields(p.texts("box")),
		"what the client got": strings.Fields(<-taken),
	} {
		got := perWriter(texts)
		for w := range want {
			if got[w] != want[w] {
				t.Errorf("%s has of %s %q, want %q", where, w, got[w], want[w])
			}
		}
		if len(texts) != (theirs+ours)*each+1 {
			t.Errorf("%s has %d messages", where, len(texts))
		}
	}
	entries, err := p.box("box").Unread(t.Context())
	if err != nil || len(entries) != 0 {
		t.Errorf("unread: %d, %v", len(entries), err)
	}
	p.sound(p.ledger())
}

// TestProofInPlaceClients checks that clients that lock with flock and truncate the file before
// they write it can run beside the real program's senders. Nothing is lost or duplicated, and no
// file is moved aside.
func TestProofInPlaceClients(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	script, err := filepath.Abs("testdata/protocol/inplace.py")
	if err != nil {
		t.Fatal(err)
	}
	p := newProof(t, "box")
	const clients, theirs, senders, ours = 2, 100, 2, 15
	p.must("send", "box", "start-00")
	p.write(filepath.Join(p.layout.Inboxes(), ".lock"), nil)
	var wg sync.WaitGroup
	want := map[string]string{"start": "00 "}
	for w := range clients {
		name := fmt.Sprintf("py%d", w)
		for i := range theirs {
			want[name] += fmt.Sprintf("%02d ", i)
		}
		wg.Go(func() {
			cmd := exec.Command(python, script, p.layout.Dir, "box", name, fmt.Sprint(theirs))
			cmd.Env = p.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		})
	}
	for w := range senders {
		name := fmt.Sprintf("go%d", w)
		for i := range ours {
			want[name] += fmt.Sprintf("%02d ", i)
		}
		wg.Go(func() {
			for i := range ours {
				if _, _, err := p.run(0, "send", "box", fmt.Sprintf("%s-%02d", name, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	texts := strings.Fields(p.texts("box"))
	got := perWriter(texts)
	for w := range want {
		if got[w] != want[w] {
			t.Errorf("the mailbox has of %s %q, want %q", w, got[w], want[w])
		}
	}
	if n := clients*theirs + senders*ours + 1; len(texts) != n {
		t.Errorf("%d messages, want %d", len(texts), n)
	}
	if n := p.asides(p.box("box").Path()); n != 0 {
		t.Errorf("%d files aside", n)
	}
	p.sound(p.ledger())
}
