package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// readers is a lead with mail, and the output of its readers.
type readers struct {
	*proof
	mailer mail.Mailer
	posted []string
	open   []string        // of posted, those not yet both read and in given
	given  strings.Builder // output of the readers
}

func newReaders(t *testing.T) *readers {
	t.Helper()
	p := newProof(t, "w")
	return &readers{proof: p, mailer: mail.Mailer{Layout: p.layout, Ledger: p.ledger()}}
}

// post sends n messages to the lead.
func (r *readers) post(n int) {
	r.t.Helper()
	for range n {
		m, ds, err := r.mailer.Post(r.t.Context(), ledger.NewMessage{Kind: team.KindTaskCompleted, From: "w", To: team.LeadName,
			Text: fmt.Sprintf(`{"type":"task_completed","from":"w","taskId":"%d","taskSubject":"x"}`, len(r.posted))})
		if err != nil || ds[0].State != team.Mailed {
			r.t.Fatalf("%+v, %v", ds, err)
		}
		r.posted, r.open = append(r.posted, m.ID), append(r.open, m.ID)
	}
}

// kept fails the test if a message is marked as read and no reader has written it.
func (r *readers) kept(how string) {
	r.t.Helper()
	given := r.given.String()
	lost := 0
	r.open = slices.DeleteFunc(r.open, func(id string) bool {
		d, err := r.mailer.Ledger.Delivery(r.t.Context(), id, team.LeadName)
		if err != nil {
			r.t.Fatal(err)
		}
		if !ledger.Reached(d.State, team.Read) {
			return false
		}
		if !strings.Contains(given, id) {
			lost++
		}
		return true
	})
	if lost > 0 {
		r.t.Fatalf("%s: %d of %d messages are marked as read, and no reader has written them", how, lost, len(r.posted))
	}
}

// all reads the remaining messages and checks that a reader has written each message.
func (r *readers) all(how string) {
	r.t.Helper()
	r.given.WriteString(r.must("inbox", "--consume", "--json"))
	r.kept(how)
	for _, id := range r.posted {
		if !strings.Contains(r.given.String(), id) {
			r.t.Errorf("%s: no reader has written message %s", how, id)
		}
	}
	if unread, err := r.box(team.LeadName).Unread(r.t.Context()); err != nil || len(unread) != 0 {
		r.t.Errorf("%s: %d are unread, %v", how, len(unread), err)
	}
}

// TestReaderKilled checks that a reader killed at any time loses no message: the next reader gets
// whatever it has not written, whichever command it was.
func TestReaderKilled(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 4
	}
	for name, args := range map[string][]string{
		"inbox": {"inbox", "--consume", "--json"}, "prompt": {"inbox", "--consume", "--prompt"}, "call": {"call", "InboxRead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReaders(t)
			r.post(1)
			began := time.Now()
			r.given.WriteString(r.must(args...))
			usual := time.Since(began)
			killed := 0
			for round := range rounds {
				r.post(1 + round%3)
				out, was, err := r.run(time.Millisecond+rand.N(usual+usual/2), args...)
				if err != nil {
					t.Fatal(err)
				}
				if was {
					killed++
				}
				r.given.WriteString(out)
				r.kept(fmt.Sprintf("round %d", round))
			}
			r.all(name)
			t.Logf("%d of %d readers were killed, %d messages", killed, rounds, len(r.posted))
		})
	}
}

// TestMCPReaderKilled is the same for an MCP client whose server is killed: the next client gets
// the messages of an answer that was not received.
func TestMCPReaderKilled(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 4
	}
	r := newReaders(t)
	calls := 0
	session := func(kill func() time.Duration) {
		cmd := r.command("mcp", "--team", "t")
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "v0"}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cs, err := client.Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(kill(), func() { _ = cmd.Process.Kill() })
		for {
			res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "InboxRead"})
			if err != nil {
				break
			}
			text := res.Content[0].(*sdk.TextContent).Text
			if res.IsError {
				t.Fatal(text)
			}
			calls++
			r.given.WriteString(text)
			r.post(1)
		}
		if ctx.Err() != nil {
			t.Fatal("the server was not killed")
		}
		timer.Stop()
		_ = cs.Close()
	}
	r.post(1)
	began := time.Now()
	r.given.WriteString(r.must("call", "InboxRead"))
	usual := time.Since(began)
	for round := range rounds {
		r.post(1 + round%3)
		session(func() time.Duration { return rand.N(2 * usual) })
		r.kept(fmt.Sprintf("round %d", round))
	}
	r.all("mcp")
	t.Logf("%d answers to %d clients, %d messages", calls, rounds, len(r.posted))
}

// TestReaderThatCannotWrite checks that no message is marked as read if the output cannot be
// written or the ledger is busy.
func TestReaderThatCannotWrite(t *testing.T) {
	t.Parallel()
	r := newReaders(t)
	r.post(3)
	run := func(to *os.File, args ...string) error {
		t.Helper()
		cmd := r.command(args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = to, &stderr
		err := cmd.Run()
		if err == nil {
			t.Errorf("teamctl %s succeeded: %s", strings.Join(args, " "), &stderr)
		}
		r.kept(strings.Join(args, " "))
		return err
	}
	for _, args := range [][]string{{"inbox", "--consume"}, {"inbox", "--consume", "--json"}, {"call", "InboxRead"}} {
		if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
			var exit *exec.ExitError
			if err := run(full, args...); errors.As(err, &exit) && exit.ExitCode() != 7 {
				t.Errorf("full disk: exit status %d", exit.ExitCode())
			}
			_ = full.Close()
		}
		nobody, pipe, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = nobody.Close()
		_ = run(pipe, args...)
		_ = pipe.Close()
	}
	// The answer is written but not marked: the next reader gets it again.
	release := r.lock(filepath.Join(r.layout.LedgerLock()))
	out := make(chan string, 1)
	cmd := r.command("inbox", "--consume", "--json")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		out <- stdout.String()
	}()
	time.AfterFunc(300*time.Millisecond, func() { _ = cmd.Process.Kill() })
	r.given.WriteString(<-out)
	release()
	r.kept("the ledger is busy")
	r.all("the end")
}
