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

// A client in another language, written from docs/protocol.md alone, sends and
// takes mail while the real program sends: nothing is lost, nothing is there twice,
// everybody's order is kept, and neither finds a damaged file.
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
	const theirs, ours, each = 4, 4, 15
	client := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := exec.Command(python, append([]string{script, p.layout.Dir, "box"}, args...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &out
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%v: %w: %s", args, err, out.String())
		}
		return out.String(), nil
	}
	p.must("send", "box", "start-00") // makes the directories
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
