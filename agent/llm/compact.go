package llm

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	fullShare    = 0.8    // share of the context from which on a conversation is compacted
	mustShrink   = 0.75   // maximum share of its size that remains after a compaction
	keepTokens   = 20_000 // of the newest entries, which stay unchanged
	hardTokens   = 5_000  // the same in the second attempt
	bytesOfToken = 4      // estimate without the provider's count
)

// summarise asks for what stands in for the older part of a conversation.
const summarise = `Write a summary of our conversation so far, for yourself: you go on with it alone. Call no tool. Use these headings:
# Goal
# Instructions
# State
# Files read and changed
# Next step
Be complete and exact about names, paths, ids and decisions; leave out everything else.`

// full reports whether the last request has used most of a known context, and no compaction has
// followed.
func (t *turn) full() bool {
	if t.setup.Info.Context <= 0 {
		return false
	}
	for i := len(t.entries.entries) - 1; i >= 0; i-- {
		switch t.entries.entries[i].Kind {
		case ledger.EntryCompaction:
			return false
		case ledger.EntryAssistant:
			u := t.entries.metas[i].Usage
			return u != nil && float64(u.InputTokens+u.OutputTokens) > fullShare*float64(t.setup.Info.Context)
		case ledger.EntryUser, ledger.EntryToolResult, ledger.EntryEvent:
		}
	}
	return false
}

// compact shortens the conversation: first results of older calls, and if that is not enough, a
// summary replaces the older entries. keep says in a person's words what the summary must contain.
func (t *turn) compact(ctx context.Context, keep, why string) error {
	if t.compactedInVain() {
		return fail("the conversation was compacted, and is too long again without a successful tool result in between: %s", why)
	}
	t.desk.Line("compacting the conversation: %s", why)
	before, sums := t.entries.size(), t.sums
	for _, newest := range []int{keepTokens, hardTokens} {
		next := t.entries.shortened(newest)
		if next.size() > int(mustShrink*float64(before)) || keep != "" {
			text, err := t.summary(ctx, next, newest, keep)
			if err != nil {
				return err
			}
			next = next.summarised(newest, text, t.task(false))
		}
		if next.size() > int(mustShrink*float64(before)) {
			continue
		}
		entry := t.compaction(next, t.sums-sums)
		err := t.commit(ctx, "record a compaction", func(c context.Context) ([]ledger.Entry, error) {
			return t.Sessions.EndCalls(c, ledger.TurnResults{Ref: t.ref, Entries: []ledger.NewEntry{entry}})
		})
		if err != nil {
			return err
		}
		t.desk.Line("compacted: from about %d to %d tokens", before/bytesOfToken, next.size()/bytesOfToken)
		return t.read(ctx)
	}
	return fail("the conversation cannot be compacted: a summary leaves more than three quarters of it (%s)", why)
}

// compactedInVain reports whether no call has succeeded since the turn's newest compaction. It reads
// the conversation and no counter, so that a restart of the process changes nothing.
func (t *turn) compactedInVain() bool {
	i := t.entries.compaction()
	if i < 0 || t.entries.entries[i].Job != t.Job.ID {
		return false
	}
	since := t.entries.entries[i].Seq
	for i, e := range t.entries.entries {
		if e.Seq > since && e.Kind == ledger.EntryToolResult && e.Content != ledger.ResultLost && !t.entries.metas[i].Failed {
			return false
		}
	}
	return true
}

// compaction returns the entry of the compaction that has led to a conversation, for which the model
// was asked for that many summaries.
func (t *turn) compaction(next *transcript, sums int) ledger.NewEntry {
	i := next.compaction()
	text, m := next.entries[i].Content, next.metas[i]
	m.Sums = sums
	text, m.Long = t.keep(text, shortResult)
	return ledger.NewEntry{Kind: ledger.EntryCompaction, Content: text, Meta: m.raw()}
}

// compactAsked compacts the conversation if that was requested since the last compaction; done
// means that the turn has nothing else to do, and has ended.
func (t *turn) compactAsked(ctx context.Context) (done bool, err error) {
	e := t.entries.event
	if e.Seq <= t.entries.compacted {
		return false, nil
	}
	m, err := metaOf(e)
	if err != nil || !m.Asked {
		return false, err
	}
	if n := len(t.entries.entries); n == 0 || t.rounds > 0 {
		return false, nil
	}
	idle := t.entries.answered()
	if err := t.compact(ctx, e.Content, "asked for"); err != nil || !idle {
		return false, err
	}
	_, err = t.end(ctx, team.TurnDone, "", nil)
	return true, err
}

// summary lets the model summarise the entries before the newest ones.
func (t *turn) summary(ctx context.Context, tr *transcript, newest int, keep string) (string, error) {
	old := &transcript{entries: tr.entries[:tr.cut(newest)]}
	old.metas = tr.metas[:len(old.entries)]
	if len(old.entries) == 0 {
		return "", nil
	}
	ask := summarise
	if keep != "" {
		ask += "\nKeep in any case: " + keep
	}
	request := func(ctx context.Context) (model.Request, error) {
		r, err := t.requestOf(ctx, old)
		if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == model.RoleUser {
			last := &r.Messages[n-1]
			last.Parts = append(last.Parts, model.Part{Text: ask})
		} else {
			r.Messages = append(r.Messages, model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: ask}}})
		}
		r.Tools, r.Ephemeral = nil, ""
		return r, err
	}
	a, err := t.stream(ctx, request)
	for k, ok := model.KindOf(err); ok && k == model.TooLong; k, ok = model.KindOf(err) {
		later := old.later()
		if later == nil {
			return "", fail("the conversation cannot be compacted: %v", err)
		}
		t.desk.Line("%v: what came first is left out of the summary", err)
		old = later
		a, err = t.stream(ctx, request)
	}
	if err != nil {
		return "", err
	}
	t.sums++
	if err := t.spend(ctx, a.Usage); err != nil {
		return "", err
	}
	return textOf(a.Message), t.desk.Late(ctx)
}

// size returns the number of bytes sent to the model.
func (t *transcript) size() int {
	n, short := 0, t.short()
	for i, e := range t.entries {
		n += sizeOf(e, t.metas[i], short)
	}
	return n
}

func sizeOf(e ledger.Entry, m meta, short int64) int {
	n := len(e.Content)
	if e.Kind == ledger.EntryToolResult && e.Seq < short {
		n = min(n, 2*shortResult)
	}
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Input)
	}
	return n
}

// cut returns where the newest entries begin: before an entry of the user or an answer, never
// between a call and its result, and after the previous compaction.
func (t *transcript) cut(tokens int) int {
	at, n, short := len(t.entries), 0, t.short()
	for i := len(t.entries) - 1; i > max(0, t.compaction()); i-- {
		n += sizeOf(t.entries[i], t.metas[i], short)
		if n > tokens*bytesOfToken {
			break
		}
		if k := t.entries[i].Kind; k == ledger.EntryUser || k == ledger.EntryAssistant {
			at = i
		}
	}
	return at
}

// later returns the conversation without what came first, at least a half of it: its first entry, its
// summary, and the entries from one of the user or an answer on; nil if there is no such half.
func (t *transcript) later() *transcript {
	head, short := max(1, t.compaction()+1), t.short()
	if head >= len(t.entries) {
		return nil
	}
	left := 0
	for i, e := range t.entries[head:] {
		left += sizeOf(e, t.metas[head+i], short)
	}
	at, n := len(t.entries), 0
	for i := len(t.entries) - 1; i > head; i-- {
		if n += sizeOf(t.entries[i], t.metas[i], short); n > left/2 {
			break
		}
		if k := t.entries[i].Kind; k == ledger.EntryUser || k == ledger.EntryAssistant {
			at = i
		}
	}
	if at == len(t.entries) {
		return nil
	}
	return &transcript{entries: slices.Concat(t.entries[:head], t.entries[at:]), metas: slices.Concat(t.metas[:head], t.metas[at:])}
}

// shortened returns the conversation with shortened results of older calls.
func (t *transcript) shortened(newest int) *transcript {
	at := t.cut(newest)
	if at == len(t.entries) {
		at-- // all but the newest entry
	}
	c, m := ledger.Entry{NewEntry: ledger.NewEntry{Kind: ledger.EntryCompaction}}, meta{}
	i := t.compaction()
	if i >= 0 {
		c.Content, m.Kept = t.entries[i].Content, t.metas[i].Kept
	}
	m.Short = t.entries[max(0, at)].Seq
	return t.with(c, m, i)
}

// summarised returns the conversation with a summary in place of the entries before the newest
// ones. The summary contains the current task verbatim.
func (t *transcript) summarised(newest int, text, task string) *transcript {
	at := t.cut(newest)
	m := t.metas[t.compaction()]
	c := ledger.Entry{NewEntry: ledger.NewEntry{Kind: ledger.EntryCompaction, Content: "[Summary of what came before]\n" + text}}
	if task != "" {
		c.Content += "\n\n[The task, word for word]\n" + task
	}
	if at < len(t.entries) {
		m.Kept = t.entries[at].Seq
	} else {
		m.Kept = t.entries[len(t.entries)-1].Seq + 1
	}
	out := &transcript{}
	if at > 0 && t.entries[0].Kind != ledger.EntryCompaction {
		out.entries, out.metas = append(out.entries, t.entries[0]), append(out.metas, t.metas[0])
	}
	out.entries, out.metas = append(out.entries, c), append(out.metas, m)
	out.entries = append(out.entries, t.entries[at:]...)
	out.metas = append(out.metas, t.metas[at:]...)
	return out
}

// with returns the conversation with a compaction after its first entry, in place of the one at i.
func (t *transcript) with(c ledger.Entry, m meta, i int) *transcript {
	out := &transcript{}
	for j, e := range t.entries {
		if j == i {
			continue
		}
		out.entries, out.metas = append(out.entries, e), append(out.metas, t.metas[j])
		if len(out.entries) == 1 {
			out.entries, out.metas = append(out.entries, c), append(out.metas, m)
		}
	}
	return out
}
