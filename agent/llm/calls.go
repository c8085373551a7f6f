package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
)

// atOnce is the number of concurrent read-only calls.
const atOnce = 4

// calls runs the calls of the newest answer that have no result. The results of the last ones are
// committed at the boundary behind them, with what steers the turn there.
func (t *turn) calls(ctx context.Context) (Verdict, error) {
	open := t.entries.open()
	for len(open) > 0 {
		if open[0].ID != t.begun {
			if v, err := t.before(ctx); err != nil || v == Steered {
				return v, err
			}
		}
		n := 1 // number of concurrent calls
		for t.readOnly(open[0].Name) && n < min(len(open), atOnce) && t.readOnly(open[n].Name) {
			n++
		}
		err := t.callAll(ctx, open[:n])
		if t.begun = ""; err != nil { // a later call may have the same id
			return GoOn, err
		}
		open = open[n:]
	}
	return GoOn, nil
}

// before is the boundary before a call, at which only a message that steers is taken in.
func (t *turn) before(ctx context.Context) (Verdict, error) {
	v, err := t.desk.Look(ctx)
	if err != nil {
		return GoOn, err
	}
	if v == Steered {
		if v, err := t.boundary(ctx); err != nil || v == Steered {
			return v, err
		}
	}
	return GoOn, t.record(ctx)
}

// callAll runs calls concurrently. Their results are to be committed, in order.
func (t *turn) callAll(ctx context.Context, calls []model.Call) error {
	results := make([]Result, len(calls))
	took := make([]time.Duration, len(calls))
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		tool := t.tool(c.Name)
		if tool == nil {
			results[i] = Result{Failed: true, Text: fmt.Sprintf("Tool '%s' is not available for this agent (policy restriction).", c.Name)}
			continue
		}
		if t.entries.gone[c.ID] {
			results[i] = Result{Failed: true, Text: "Nothing was done: the input of this call was in a file that is gone. Make the call again."}
			continue
		}
		if !tool.ReadOnly && c.ID != t.begun {
			err := t.desk.Write(ctx, "begin a call", func(w context.Context) error {
				_, err := t.Sessions.BeginCall(w, t.ref, c.ID)
				return err
			})
			if err != nil {
				return err
			}
		}
		wg.Go(func() {
			began := time.Now()
			results[i], errs[i] = tool.Run(ctx, Call{c, t.desk})
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	for i, c := range calls {
		if tool := t.tool(c.Name); errs[i] != nil && ctx.Err() != nil && tool.ReadOnly {
			return ctx.Err() // the next life runs it again
		}
		r := results[i]
		if errs[i] != nil {
			r = Result{Failed: true, Text: "The tool failed: " + errs[i].Error()}
			if cause := context.Cause(ctx); cause != nil {
				r.Text = "Ended before its end (" + cause.Error() + "). It may have happened in part: check before you repeat it."
			}
		}
		t.showCall(c, r, took[i])
		m := meta{Failed: r.Failed, Millis: took[i].Milliseconds(), Paths: r.Paths, Diff: r.Diff, File: r.File, Seen: r.Seen, Why: r.Decision}
		t.result(c, m, r)
	}
	return ctx.Err()
}

// result adds the result of a call to those that are to be committed.
func (t *turn) result(c model.Call, m meta, r Result) {
	text := r.Text
	m.Call, m.Tool = c.ID, c.Name
	if text == "" {
		text = "(no output)"
	}
	text, m.Long = t.keep(text, shortResult)
	t.ended = append(t.ended, ledger.CallResult{
		CallID: c.ID, Entry: ledger.NewEntry{Kind: ledger.EntryToolResult, Content: text, Meta: m.raw()}, Collects: r.Collects,
	})
}

// record commits the results of calls, regardless of the end of ctx.
func (t *turn) record(ctx context.Context) error {
	if len(t.ended) == 0 {
		return nil
	}
	err := t.commit(context.WithoutCancel(ctx), "record the results of calls", func(w context.Context) ([]ledger.Entry, error) {
		return t.Sessions.EndCalls(w, ledger.TurnResults{Ref: t.ref, Results: t.ended})
	})
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	t.ended = nil
	return nil
}

// keep is Keep for the turn. A text that cannot be written to a file stays in the ledger.
func (t *turn) keep(text string, begins int) (short, name string) {
	short, name, err := Keep(t.Texts, text, begins)
	if err != nil {
		t.desk.Line("[%d bytes stand in the ledger: %v]", len(text), err)
	}
	return short, name
}

// Keep writes a text that is too long for an entry to a file, and returns the replacement for the
// entry, which begins with that many characters, and the file's name, "" for a text that stays in
// its entry.
func Keep(texts Texts, text string, begins int) (short, name string, err error) {
	if len(text) <= ledger.MaxEntryText || texts == nil {
		return text, "", nil
	}
	if name, err = texts.Keep(text); err != nil || name == "" {
		return text, "", err
	}
	return ledger.ShortText(text, begins, name), name, nil
}

func (t *turn) tool(name string) *Tool {
	for i := range t.setup.Tools {
		if t.setup.Tools[i].Name == name {
			return &t.setup.Tools[i]
		}
	}
	return nil
}

func (t *turn) readOnly(name string) bool {
	tool := t.tool(name)
	return tool == nil || tool.ReadOnly
}

// showCall writes one line for a call, and the diff of an edit below it.
func (t *turn) showCall(c model.Call, r Result, took time.Duration) {
	note := r.Note
	if note == "" {
		note, _, _ = strings.Cut(strings.TrimSpace(r.Text), "\n")
	}
	t.desk.Line("%s", CallLine(c.Name, c.Input, r.Failed, took, cutRunes(note, 100)))
	if r.Diff != "" {
		t.desk.Line("%s", strings.TrimRight(r.Diff, "\n"))
	}
}

// CallLine is a call on a screen: its outcome, its input in short, its time and what came of it.
func CallLine(tool string, input []byte, failed bool, took time.Duration, note string) string {
	mark := "✓"
	if failed {
		mark = "✗"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s (%s) %s", mark, tool, cutRunes(string(compact(input)), 100), roundTime(took), note))
}

func roundTime(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

func compact(raw []byte) []byte { return bytes.Join(bytes.Fields(raw), []byte(" ")) }

func cutRunes(s string, n int) string {
	rs := []rune(s)
	if len(rs) <= n {
		return s
	}
	return string(rs[:n-1]) + "…"
}
