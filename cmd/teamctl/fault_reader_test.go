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

// readers is a lead with mail, and what its readers were given.
type readers struct {
	*proof
	mailer mail.Mailer
	posted []string
	open   []string        // of those, not yet seen both marked as read and given
	given  strings.Builder // what readers have written out, as it is
}

func newReaders(t *testing.T) *readers {
	t.Helper()
	p := newProof(t, "w")
	return &readers{proof: p, mailer: mail.Mailer{Layout: p.layout, Ledger: p.ledger()}}
}

// post sends the lead so many messages.
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

// kept fails the test for a message that was marked as read and given to nobody.
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
		r.t.Fatalf("%s: %d of %d messages are marked as read, and no reader has got them", how, lost, len(r.posted))
	}
}

// all reads what is left and checks that every message was given to some reader.
func (r *readers) all(how string) {
	r.t.Helper()
	r.given.WriteString(r.must("inbox", "--consume", "--json"))
	r.kept(how)
	for _, id := range r.posted {
		if !strings.Contains(r.given.String(), id) {
			r.t.Errorf("%s: nobody has got message %s", how, id)
		}
	}
	if unread, err := r.box(team.LeadName).Unread(r.t.Context()); err != nil || len(unread) != 0 {
		r.t.Errorf("%s: %d are unread, %v", how, len(unread), err)
	}
}

// A reader that is killed at any moment takes no message with it: what it has not written
// out comes again, whichever command it was.
func TestReaderKilled(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 8
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

// The same of an MCP client whose server is killed: an answer that has not come is asked
// for again by the next one.
func TestMCPReaderKilled(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 8
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

// Where the output cannot be written, and where the ledger is busy, nothing is marked.
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
	// The answer is out, the mark is not: it comes again.
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
