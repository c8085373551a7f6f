package llm

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/teamctl/teamctl/ledger"
)

// conversations are those of sessions between their turns: a turn that follows soon reads
// only what is new. Their memory is free to be collected.
type conversations struct {
	mu   sync.Mutex
	list map[string]weak.Pointer[transcript] // by session
}

// put hands a conversation over to whoever takes it: it must not be used any more.
func (k *conversations) put(session string, t *transcript) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.list == nil {
		k.list = map[string]weak.Pointer[transcript]{}
	}
	for s, p := range k.list {
		if p.Value() == nil {
			delete(k.list, s)
		}
	}
	k.list[session] = weak.Make(t)
}

// take returns a conversation and forgets it; nil: there is none.
func (k *conversations) take(session string) *transcript {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.list[session].Value()
	delete(k.list, session)
	return t
}

// hand keeps the conversation of a turn for the session's next one, which may begin with the commit
// that follows.
func (t *turn) hand() {
	if t.entries != nil {
		t.between.put(t.Job.Session, t.entries)
		t.entries = nil
	}
}

// mark is an entry up to which a transcript has all; the zero mark is none.
type mark struct{ seq, id, at int64 }

func markOf(e ledger.Entry) mark { return mark{e.Seq, e.ID, e.At} }

// committed adds entries that the turn has written.
func (t *transcript) committed(list []ledger.Entry) error {
	for _, e := range list {
		switch {
		case e.Kind == ledger.EntryCompaction || e.Seq <= t.upto.seq: // or the ledger was restored
			t.stale = true
		case e.Seq == t.upto.seq+1: // otherwise another's entry is between
			t.upto = markOf(e)
		}
	}
	return t.add(list...)
}

// more adds the entries after the mark; ok is false if all are to be read again: the entry of the
// mark is not the same any more, or a compaction has followed.
func (t *transcript) more(ctx context.Context, s Sessions, session string) (ok bool, err error) {
	if t == nil || t.stale || t.upto == (mark{}) {
		return false, nil
	}
	list, err := s.Entries(ctx, session, t.upto.seq-1, 0)
	if err != nil || len(list) == 0 || markOf(list[0]) != t.upto ||
		slices.ContainsFunc(list[1:], func(e ledger.Entry) bool { return e.Kind == ledger.EntryCompaction }) {
		return false, err
	}
	n := 0 // without those of the turn behind another's
	for i, e := range t.entries {
		if e.Seq <= t.upto.seq {
			t.entries[n], t.metas[n] = e, t.metas[i]
			n++
		}
	}
	t.entries, t.metas = t.entries[:n], t.metas[:n]
	t.upto = markOf(list[len(list)-1])
	return true, t.add(list[1:]...)
}
