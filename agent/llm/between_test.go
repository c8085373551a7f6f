package llm

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/ledger"
)

// listed is a session whose transcript is a list.
type listed struct {
	Sessions
	list  []ledger.Entry
	reads int // entries
	now   int64
}

func (l *listed) Entries(_ context.Context, _ string, after int64, limit int) ([]ledger.Entry, error) {
	var out []ledger.Entry
	for _, e := range l.list {
		if e.Seq > after && (limit == 0 || len(out) < limit) {
			out = append(out, e)
		}
	}
	l.reads += len(out)
	return out, nil
}

func (l *listed) NewestEntry(_ context.Context, _ string, kind ledger.EntryKind) (e ledger.Entry, ok bool, err error) {
	for _, x := range slices.Backward(l.list) {
		if x.Kind == kind {
			return x, true, nil
		}
	}
	return e, false, nil
}

// put appends an entry and returns it.
func (l *listed) put(kind ledger.EntryKind, m meta) ledger.Entry {
	n := int64(len(l.list) + 1)
	l.now++
	l.list = append(l.list, ledger.Entry{ID: 100 + n, Seq: n, At: l.now, NewEntry: ledger.NewEntry{Kind: kind, Content: fmt.Sprint(kind, " ", n), Meta: m.raw()}})
	return l.list[n-1]
}

// TestConversationGoesOn checks that what a turn, or the next one, reads in addition makes the
// conversation that reading it from the beginning makes: whatever was written meanwhile by the turn
// and by others.
func TestConversationGoesOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &listed{}
		l.put(ledger.EntryUser, meta{})
		tn := &turn{Runner: &Runner{Sessions: l}}
		kinds := rapid.SampledFrom([]ledger.EntryKind{ledger.EntryUser, ledger.EntryAssistant, ledger.EntryToolResult, ledger.EntryEvent})
		check := func() {
			if err := tn.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, err := readTranscript(t.Context(), l, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(tn.entries, want) {
				t.Fatalf("%+v\nwant\n%+v", tn.entries, want)
			}
		}
		check()
		t.Repeat(map[string]func(*rapid.T){
			"own": func(t *rapid.T) {
				var list []ledger.Entry
				for range rapid.IntRange(1, 3).Draw(t, "entries") {
					list = append(list, l.put(kinds.Draw(t, "kind"), meta{}))
				}
				if err := tn.entries.committed(list); err != nil {
					t.Fatal(err)
				}
			},
			"another's": func(t *rapid.T) { l.put(kinds.Draw(t, "kind"), meta{}) },
			"compacted": func(t *rapid.T) {
				e := l.put(ledger.EntryCompaction, meta{Kept: rapid.Int64Range(1, int64(len(l.list)+1)).Draw(t, "kept")})
				if rapid.Bool().Draw(t, "by the turn") {
					if err := tn.entries.committed([]ledger.Entry{e}); err != nil {
						t.Fatal(err)
					}
				}
			},
			"read": func(*rapid.T) { check() },
			"next turn": func(*rapid.T) {
				tn.hand()
				check()
			},
		})
		check()
	})
}

// TestNextTurnReadsWhatIsNew checks that a turn that follows does not read the conversation again,
// unless something was missing in it, or it was restored and has gone on in another way.
func TestNextTurnReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts    Texts
		restored bool
		all      bool
	}{"whole": {}, "a file was missing": {texts: noTexts{}, all: true}, "restored": {restored: true, all: true}} {
		l := &listed{}
		for range 50 {
			l.put(ledger.EntryUser, meta{Long: "file"})
		}
		r := &Runner{Sessions: l, Texts: c.texts}
		first, next := &turn{Runner: r}, &turn{Runner: r}
		if err := first.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		conversation := first.entries
		first.hand()
		if first.entries != nil {
			t.Error("a turn has what it has handed over")
		}
		if c.restored {
			l.list = l.list[:49]
			l.put(ledger.EntryUser, meta{})
		}
		l.put(ledger.EntryUser, meta{})
		l.reads = 0
		if err := next.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all := l.reads > 2; all != c.all || len(next.entries.entries) != 51 {
			t.Errorf("%s: read %d entries, has %d", name, l.reads, len(next.entries.entries))
		}
		if r.between.take("") != nil {
			t.Errorf("%s: two turns can have one conversation", name)
		}
		runtime.KeepAlive(conversation)
	}
}

// TestConversationIsCollected checks that an agent at rest does not hold the conversations of its
// sessions.
func TestConversationIsCollected(t *testing.T) {
	t.Parallel()
	var c conversations
	for i := range 10 {
		c.put(fmt.Sprint(i), &transcript{entries: make([]ledger.Entry, 100)})
	}
	runtime.GC()
	c.put("last", &transcript{})
	if n := len(c.list); n > 2 { // one may still be on the stack
		t.Errorf("%d conversations are held", n)
	}
}

// noTexts has no files.
type noTexts struct{}

func (noTexts) Keep(string) (string, error) { return "", nil }
func (noTexts) Read(name string) (string, error) {
	return "", fmt.Errorf("no file %s", name)
}
