package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// maxGoOn is the number of answers that may continue one cut at its limit.
const maxGoOn = 3

// goOn is sent after an answer that was cut at its length limit.
const goOn = "Your answer was cut at the limit of its length. Go on exactly where it ends."

// turn is one job while it runs.
type turn struct {
	*Runner
	ledger.ClaimedTurn
	ref     ledger.TurnRef
	desk    Desk
	setup   Setup
	entries *transcript
	spent   team.Usage          // of the job so far
	rounds  int                 // answers of the job so far
	sums    int                 // summaries of the job so far
	subject ledger.Entry        // what the job is about, see task
	again   int                 // consecutive answers cut at their limit
	warned  bool                // the model was warned about repeating itself
	begun   string              // id of the call that has begun with its answer
	ended   []ledger.CallResult // of calls, not committed yet
	next    *ledger.ClaimedTurn // what the commit of the end has claimed
}

// failure ends a turn as failed, with a reason for people.
type failure struct{ why string }

func (f failure) Error() string { return f.why }

func fail(format string, args ...any) error { return failure{fmt.Sprintf(format, args...)} }

// Turn runs a job to its end. An error means that the process cannot continue it: the job stays as
// it is, for the next life.
func (r *Runner) Turn(ctx context.Context, claimed ledger.ClaimedTurn, desk Desk) (out Outcome, err error) {
	t := &turn{Runner: r, ClaimedTurn: claimed, ref: claimed.Job.Ref(), desk: desk}
	defer func() { out.Next = t.next }()
	steered, err := t.run(ctx)
	switch cause := context.Cause(ctx); {
	case steered && err == nil:
		return Outcome{State: team.TurnSteered}, nil
	case errors.Is(cause, ErrInterrupted), errors.Is(cause, ErrShutdown):
		return t.end(ctx, team.TurnCancelled, cause.Error(), nil)
	case ctx.Err() != nil:
		_, err := t.end(ctx, team.TurnQueued, "its process stopped", nil)
		return Outcome{}, errors.Join(cause, err)
	case err == nil:
		return Outcome{State: team.TurnDone}, nil
	}
	var f failure
	if errors.As(err, &f) {
		return t.end(ctx, team.TurnFailed, f.why, nil)
	}
	return Outcome{}, err
}

func (t *turn) run(ctx context.Context) (steered bool, err error) {
	if err := t.resolve(ctx); err != nil {
		return false, err
	}
	if !bytes.Equal(t.setup.Effective, t.Job.Effective) { // most turns work with what the one before did
		err := t.desk.Write(ctx, "note what a turn works with", func(c context.Context) error {
			return t.Sessions.NoteTurn(c, ledger.TurnNote{Ref: t.ref, Effective: t.setup.Effective})
		})
		if err != nil {
			return false, err
		}
	}
	if err := t.read(ctx); err != nil {
		return false, err
	}
	if err := t.begins(ctx); err != nil {
		return false, err
	}
	if done, err := t.compactAsked(ctx); done || err != nil {
		return false, err
	}
	if t.entries.answered() { // it was cut at its limit before the process was killed
		if err := t.note(ctx, goOn); err != nil {
			return false, err
		}
	}
	for {
		if v, err := t.calls(ctx); err != nil || v == Steered {
			return v == Steered, err
		}
		if t.rounds > 0 {
			v, err := t.boundary(ctx)
			if err != nil || v == Steered {
				return v == Steered, err
			}
			if err := t.checkLoop(ctx); err != nil {
				return false, err
			}
			if err := t.mayAsk(); err != nil { // before a compaction for the request
				return false, err
			}
		}
		answer, err := t.ask(ctx)
		if err != nil {
			return false, err
		}
		done, err := t.take(ctx, answer)
		if done || err != nil {
			return false, err
		}
	}
}

// resolve determines the setup. An error of Resolve fails the turn, unless it is the ledger's.
func (t *turn) resolve(ctx context.Context) error {
	return t.patiently(ctx, func() error {
		session, err := t.Sessions.Session(ctx, t.Job.Session)
		if err != nil {
			return err
		}
		t.setup, err = t.Resolve(ctx, session, t.ClaimedTurn)
		if err != nil && !ledger.Temporary(err) {
			return failure{err.Error()}
		}
		return err
	})
}

// patiently calls a function that reads the ledger until it can.
func (t *turn) patiently(ctx context.Context, read func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := read()
		if err == nil || !ledger.Temporary(err) {
			return err
		}
		pause := max(t.jittered(wait), leastWait)
		t.desk.Line("%v: again in %s", err, roundTime(pause))
		if err := t.desk.Wait(ctx, pause, "", err.Error()); err != nil {
			return err
		}
	}
}

// mayAsk fails once the turn has had its maximum of answers, of which summaries are some.
func (t *turn) mayAsk() error {
	if most := cmp.Or(t.setup.Rounds, team.MaxTurnRounds); t.rounds+t.sums >= most {
		return fail("Agent exceeded maximum tool iterations (%d)", most)
	}
	return nil
}

// read reads what is new in the conversation, or all of it.
func (t *turn) read(ctx context.Context) error {
	if t.entries == nil {
		t.entries = t.between.take(t.Job.Session)
	}
	return t.patiently(ctx, func() error {
		ok, err := t.entries.more(ctx, t.Sessions, t.Job.Session)
		if err == nil && !ok {
			t.entries, err = readTranscript(ctx, t.Sessions, t.Texts, t.Job.Session)
		}
		return err
	})
}

// boundary takes in unread mail, and commits the results of the calls before it.
func (t *turn) boundary(ctx context.Context) (Verdict, error) {
	conversation := t.entries
	token := Token{Task: t.task(true), Source: t.source(), Rounds: t.rounds, Open: len(t.entries.open()) > len(t.ended), Results: t.ended}
	t.hand() // a turn that steers this one may begin at once
	v, err := t.desk.Take(ctx, token)
	if err == nil && v != Steered {
		t.entries = conversation
		t.between.take(t.Job.Session)
	}
	switch {
	case err != nil:
		return v, err
	case v == GoOn:
		return v, t.record(ctx)
	}
	t.ended = nil
	if v == TookIn {
		err = t.read(ctx)
	}
	return v, err
}

// begins reads what the job has had so far. A compaction may have replaced a part of its entries, so
// neither is counted from the conversation.
func (t *turn) begins(ctx context.Context) error {
	if len(t.Job.Usage) > 0 {
		if err := json.Unmarshal(t.Job.Usage, &t.spent); err != nil {
			return team.Errorf(team.CodeInternal, "usage of turn %d: %w", t.Job.ID, err)
		}
	}
	if t.Job.Attempt > 1 {
		var so ledger.TurnSoFar
		err := t.patiently(ctx, func() (err error) {
			so, err = t.Sessions.TurnSoFar(ctx, t.Job.Session, t.Job.ID)
			return err
		})
		if err != nil {
			return err
		}
		t.rounds, t.sums, t.subject = so.Answers, so.Summaries, so.Subject
		m, err := metaOf(t.subject)
		t.entries.whole(&t.subject, &m)
		return err
	}
	for _, e := range t.entries.entries {
		if e.Kind == ledger.EntryUser {
			t.subject = e
		}
	}
	return nil
}

// task returns the subject of the turn: the newest text that came in before its first answer;
// short: only the sender's own words.
func (t *turn) task(short bool) string {
	m, err := metaOf(t.subject)
	if short && err == nil && m.Task != "" {
		return string(m.Task)
	}
	return t.subject.Content
}

// source identifies the task of the turn: the turn that began it.
func (t *turn) source() string { return strconv.FormatInt(t.Job.ID, 10) }

// note adds a notice for the model that answers nothing.
func (t *turn) note(ctx context.Context, text string) error {
	return t.commit(ctx, "record a notice", func(c context.Context) ([]ledger.Entry, error) {
		return t.Sessions.EndCalls(c, ledger.TurnResults{Ref: t.ref, Entries: []ledger.NewEntry{{Kind: ledger.EntryUser, Content: text}}})
	})
}

// take commits an answer; done means that it has ended the turn.
func (t *turn) take(ctx context.Context, a model.Answer) (done bool, err error) {
	entry, calls := t.answer(a)
	switch {
	case a.Stop == model.StopRefused:
		_, err := t.end(ctx, team.TurnFailed, "the model refused to go on", []ledger.NewEntry{entry})
		return true, err
	case len(calls) > 0:
		t.again = 0
		begin := t.beginning(ctx, calls[0])
		err := t.answered(ctx, entry, calls, begin)
		if err == nil {
			t.begun = begin
		}
		return false, err
	case a.Stop == model.StopLimit && t.again < maxGoOn:
		t.again++
		if err := t.answered(ctx, entry, nil, ""); err != nil {
			return false, err
		}
		return false, t.note(ctx, goOn)
	}
	if err := t.desk.Late(ctx); err != nil {
		t.spent.Add(a.Usage) // the answer is not stored
		return false, err
	}
	_, err = t.end(ctx, team.TurnDone, "", []ledger.NewEntry{entry})
	return true, err
}

// beginning returns the id of the first call of an answer if it is to begin with the commit of the
// answer: it may change something, and no message steers the turn at the boundary before it.
func (t *turn) beginning(ctx context.Context, first ledger.NewCall) string {
	if first.ReadOnly {
		return ""
	}
	if v, err := t.desk.Look(ctx); err != nil || v == Steered {
		return "" // calls meets it again
	}
	return first.CallID
}

// answered commits an answer that does not end the turn.
func (t *turn) answered(ctx context.Context, entry ledger.NewEntry, calls []ledger.NewCall, begin string) error {
	in := ledger.TurnAnswer{Ref: t.ref, Entry: entry, Calls: calls, Begin: begin, Usage: t.usage(entry)}
	err := t.commit(ctx, "record an answer", func(c context.Context) ([]ledger.Entry, error) {
		e, err := t.Sessions.Answered(c, in)
		return []ledger.Entry{e}, err
	})
	if err == nil {
		t.spent = t.used(entry)
		t.rounds++
	}
	return err
}

// answer converts an answer to an entry and its calls.
func (t *turn) answer(a model.Answer) (ledger.NewEntry, []ledger.NewCall) {
	m := meta{From: t.setup.Model.String(), Calls: callsOf(a.Message), Usage: &a.Usage}
	var calls []ledger.NewCall
	for i, c := range m.Calls {
		if short, name := t.keep(string(c.Input), 1); name != "" {
			if m.Inputs == nil {
				m.Inputs = map[string]string{}
			}
			_, short, _ = strings.Cut(short, "\n") // without the first character of the input
			m.Inputs[c.ID], c.Input = name, instead(short)
			m.Calls[i] = c
		}
		calls = append(calls, ledger.NewCall{CallID: c.ID, Name: c.Name, Input: string(c.Input), ReadOnly: t.readOnly(c.Name)})
	}
	e := ledger.NewEntry{Kind: ledger.EntryAssistant, Content: textOf(a.Message), Raw: string(a.Message.Raw)}
	e.Content, m.Long = t.keep(e.Content, longBegins)
	if _, m.Bytes = t.keep(e.Raw, 1); m.Bytes != "" {
		e.Raw = ""
	}
	e.Meta = m.raw()
	return e, calls
}

// instead is what an entry has in place of an input that is in a file.
func instead(says string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"input": says})
	if err != nil {
		panic(fmt.Sprintf("encode %q: %v", says, err)) // a string only: cannot fail
	}
	return b
}

// commit writes entries and adds them to the conversation.
func (t *turn) commit(ctx context.Context, doing string, write func(context.Context) ([]ledger.Entry, error)) error {
	var list []ledger.Entry
	err := t.desk.Write(ctx, doing, func(c context.Context) (err error) {
		list, err = write(c)
		return err
	})
	if err != nil {
		return err
	}
	return t.entries.committed(list)
}

// end ends the job, after giving its open calls a result.
func (t *turn) end(ctx context.Context, state team.TurnState, why string, entries []ledger.NewEntry) (Outcome, error) {
	after := context.WithoutCancel(ctx)
	in := ledger.TurnEnd{Ref: t.ref, State: state, Reason: why, Results: t.ended, Entries: entries, Usage: t.usage(entries...)}
	if t.setup.Report != nil && state.Ended() {
		in.Result = t.setup.Report(after)
	}
	if ctx.Err() == nil && state.Ended() {
		in.Claim = t.desk.Claim()
	}
	t.hand()
	var ended ledger.EndedTurn
	err := t.desk.Write(after, "end a turn", func(c context.Context) (err error) {
		ended, err = t.Sessions.EndTurn(c, in)
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	if state != team.TurnQueued {
		t.showUsed(t.used(entries...))
	}
	if ended.Dropped != "" {
		t.desk.Line("[its parent is not told: %s]", ended.Dropped)
	}
	t.next = ended.Turn
	o := Outcome{State: state}
	if state == team.TurnFailed {
		o.Failed = why
	}
	return o, nil
}
