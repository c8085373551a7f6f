package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/memberlog"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	// chatBack is how many entries of the past a chat begins with.
	chatBack = 20
	// twice is the time within which a second ctrl-c without a turn ends the chat.
	twice = 3 * time.Second
)

// follow shows the conversation as it grows, and sends what is typed.
func (ch *chat) follow(ctx context.Context) error {
	if !ch.lead() {
		return ch.converse(ctx, nil)
	}
	run, err := ch.runLead(ctx, ch.out.stdout)
	if err != nil {
		return err
	}
	if run == nil {
		ch.out.note("another process runs this conversation; this one shows it and sends")
		return ch.converse(ctx, nil)
	}
	err = ch.converse(run.ctx, run)
	return errors.Join(err, run.stop())
}

// converse takes lines until their end, and shows what is new. A conversation that runs
// here is on the screen already.
func (ch *chat) converse(ctx context.Context, run *leadRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer ch.takeInterrupts(ctx, run)()
	seq := int64(0)
	s, err := ch.team.Session(ctx, ch.member.Name)
	switch {
	case err == nil:
		seq = max(0, s.LastSeq-chatBack)
	case team.ReasonOf(err) != team.ReasonSessionNotFound:
		return err
	}
	calls := map[string]json.RawMessage{}
	show := func() error {
		list, err := ch.team.Ledger.Entries(ctx, ch.member.SessionKey, seq, 0)
		if err == nil {
			err = ch.team.Whole(ctx, ch.member.SessionKey, list)
		}
		for _, e := range list {
			seq = e.Seq
			ch.show(e, calls)
		}
		return err
	}
	if live := run != nil || !ch.lead() && ch.atTerminal(); live {
		if err := show(); err != nil {
			return err
		}
		show = func() error { return nil }
	}
	if run != nil {
		run.open()
	} else if !ch.lead() && ch.atTerminal() {
		go func() { cancel(ch.watchScreen(ctx)) }()
	}
	asked := map[int64]bool{}
	if err := ch.showWaiting(ctx, asked); err != nil { // before the first line may answer it
		return err
	}
	go func() { // it ends with the input; nothing else can end a read of it
		err := ch.read(ctx)
		if err == nil && run != nil && !ch.atTerminal() {
			err = ch.untilRest(ctx)
		}
		if err == nil {
			err = errChatEnd
		}
		cancel(err)
	}()
	err = ch.team.OnChange(ctx, func() error { return errors.Join(show(), ch.showWaiting(ctx, asked)) })
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errChatEnd) {
		return nil
	}
	return err
}

// watchScreen writes what the member's own screen gets from now on: text as it streams, calls,
// what it waits for.
func (ch *chat) watchScreen(ctx context.Context) error {
	log := memberlog.New(ch.team.Layout.Bundle(ch.member.Name).Log())
	l := &logReader{log: log, member: ch.member.Name, out: ch.out, raw: true}
	return l.print(ctx, 0, time.Time{}, true)
}

// show writes an entry of the conversation as the member's own screen does.
func (ch *chat) show(e ledger.Entry, calls map[string]json.RawMessage) {
	var m struct {
		Calls []struct {
			ID    string          `json:"id"`
			Input json.RawMessage `json:"input"`
		} `json:"calls"`
		Call, Name, Diff string
		Failed           bool
		MS               int64
	}
	_ = json.Unmarshal(e.Meta, &m) // none: there is nothing to add
	switch e.Kind {
	case ledger.EntryAssistant:
		for _, c := range m.Calls {
			calls[c.ID] = c.Input
		}
		if text := strings.TrimSpace(e.Content); text != "" {
			ch.out.line("%s", printableLines(text))
		}
	case ledger.EntryToolResult:
		note := view.Cut(firstLine(strings.TrimSpace(e.Content)), 100)
		took := time.Duration(m.MS) * time.Millisecond
		ch.out.line("%s", printable(program.CallLine(m.Name, calls[m.Call], m.Failed, took, note)))
		if m.Diff != "" {
			ch.out.line("%s", printableLines(strings.TrimRight(m.Diff, "\n")))
		}
		delete(calls, m.Call)
	case ledger.EntryUser, ledger.EntryEvent, ledger.EntryCompaction:
		ch.entry(e)
	}
}

// untilRest returns once no turn of the conversation is under way or queued.
func (ch *chat) untilRest(ctx context.Context) error {
	err := ch.team.OnChange(ctx, func() error {
		open, err := ch.team.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: ch.member.SessionKey, Open: true})
		if err == nil && len(open) == 0 {
			err = errChatEnd
		}
		return err
	})
	if errors.Is(err, errChatEnd) {
		return nil
	}
	return err
}

// showWaiting shows new requests that only a person answers: all of the team's in the
// lead's conversation, a member's own in its.
func (ch *chat) showWaiting(ctx context.Context, shown map[int64]bool) error {
	list, err := ch.team.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	for _, p := range list {
		if shown[p.ID] || p.Answerer != ledger.AnswererPerson || !ch.lead() && p.Session != ch.member.SessionKey {
			continue
		}
		shown[p.ID] = true
		ch.out.line("%s", ch.out.style.Bold(printable(fmt.Sprintf("? %s %d of %s: %s", p.Kind, p.ID, p.Name, p.Subject))))
		answer := ""
		if asked, err := tool.QuestionsOf(p); err == nil && len(asked) > 0 {
			answer = " ANSWER"
		}
		ch.out.line("  /approve %d%s, or /reject %d WHY", p.ID, answer, p.ID)
	}
	return err
}

// takeInterrupts lets ctrl-c end the turn under way. Without one, the second ctrl-c in a
// row ends the chat.
func (ch *chat) takeInterrupts(ctx context.Context, run *leadRun) (stop func()) {
	var mu sync.Mutex
	var last time.Time
	take := func() bool {
		mu.Lock()
		defer mu.Unlock()
		open, err := ch.team.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: ch.member.SessionKey, Open: true})
		if err != nil || ctx.Err() != nil {
			return false
		}
		for _, j := range open {
			if j.State != team.TurnRunning {
				continue
			}
			if run != nil {
				select {
				case run.interrupts <- struct{}{}:
				default: // one is on its way
				}
				return true
			}
			if err := ch.team.Interrupt(ctx, ch.caller, ch.member.Name); err != nil {
				ch.out.note("%v", err)
			}
			return true
		}
		if time.Since(last) < twice {
			return false
		}
		last = time.Now()
		ch.out.note("no turn is under way: ctrl-d ends the chat, a second ctrl-c as well")
		return true
	}
	ch.interrupt.Store(&take)
	return func() { ch.interrupt.Store(nil) }
}

// read takes the lines of the person.
func (ch *chat) read(ctx context.Context) error {
	lines := bufio.NewReader(ch.in)
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			if err := ch.typed(ctx, text); err != nil {
				ch.out.note("%v", err)
				if hint := team.HintOf(err); hint != "" {
					ch.out.hint("%s", hint)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// typed is one line: a command, or a message.
func (ch *chat) typed(ctx context.Context, text string) error {
	if strings.HasPrefix(text, "/") {
		return ch.command(ctx, ch.member.Name, text)
	}
	if _, err := ch.send(ctx, text); err != nil || !ch.lead() {
		return err
	}
	if held, err := filelock.IsHeld(ch.team.Layout.LeadLock()); err == nil && !held {
		ch.out.note("no process runs this conversation any more: your line waits for the next \"teamctl chat\"")
	}
	return nil
}
