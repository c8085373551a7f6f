package inbox

import (
	"errors"
	"os"
	"slices"
	"testing"
)

// settled runs Settle with due entries and returns the ids noted by each call
// of Note; each noted entry must be in the file.
func settled(t *testing.T, b *Box, due ...Due) (noted [][]string) {
	t.Helper()
	err := b.Settle(bg(t), Settling{
		Wanted: func() (bool, error) { return true, nil },
		Due:    func() ([]Due, error) { return due, nil },
		Note: func(there []Due) error {
			var ids []string
			elems, bad := scanArray([]byte(content(t, b)))
			if bad != nil {
				t.Error(bad)
			}
			for _, d := range there {
				if !standsIn([]byte(content(t, b)), elems, d.ID) {
					t.Errorf("%s is noted and does not stand there", d.ID)
				}
				ids = append(ids, d.ID)
			}
			noted = append(noted, ids)
			return nil
		},
	})
	if err != nil {
		t.Error(err)
	}
	return noted
}

func ids(t *testing.T, b *Box) []string {
	t.Helper()
	var out []string
	for _, e := range entries(t, b) {
		out = append(out, e.ID)
	}
	return out
}

func TestSettle(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	a, c := Due{Entry: numbered("a", 0)}, Due{Entry: numbered("c", 0)}
	wants := Settling{
		Wanted: func() (bool, error) { return true, nil },
		Due:    func() ([]Due, error) { return []Due{a}, nil },
		Note:   func([]Due) error { return errors.New("noted") },
	}
	for _, make := range []func() error{func() error { return nil }, func() error { return os.WriteFile(b.Path(), nil, 0o600) }} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if err := b.Settle(bg(t), wants); !errors.Is(err, ErrGone) {
			t.Errorf("without a file, or an empty one: %v", err)
		}
	}
	put(t, b, "[]")
	if noted := settled(t, b, a, c); len(noted) != 1 || !slices.Equal(noted[0], []string{a.ID, c.ID}) {
		t.Errorf("two at once were noted as %v", noted)
	}
	// What is already in the file is noted first, because the process that
	// appended it may have died before noting it.
	d := Due{Entry: numbered("d", 0)}
	if noted := settled(t, b, a, d, c); len(noted) != 2 || !slices.Equal(noted[0], []string{a.ID, c.ID}) || !slices.Equal(noted[1], []string{d.ID}) {
		t.Errorf("two that were there and one more were noted as %v", noted)
	}
	if got, want := ids(t, b), []string{a.ID, c.ID, d.ID}; !slices.Equal(got, want) {
		t.Errorf("the file has %v, want %v", got, want)
	}
	wants.Wanted = func() (bool, error) { return false, nil }
	if err := b.Settle(bg(t), wants); err != nil {
		t.Errorf("unwanted: %v", err)
	}
}

// In a long file the newest entries are recognised, an old one is found
// anywhere, and entries that exceed a chunk are noted in parts.
func TestSettleInALongFile(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	put(t, b, "[]")
	first := Due{Entry: numbered("a", 0)}
	settled(t, b, first)
	large := []Due{{Entry: bulky("b", 1)}, {Entry: numbered("b", 2)}, {Entry: numbered("b", 3)}, {Entry: bulky("b", 4)}}
	if noted := settled(t, b, large...); len(noted) != 3 || len(noted[1]) != 2 {
		t.Errorf("noted as %v", noted)
	}
	before := ids(t, b)
	first.Old = true
	if noted := settled(t, b, first, large[3]); len(noted) != 1 || len(noted[0]) != 2 {
		t.Errorf("an old one and the newest were noted as %v", noted)
	}
	if got := ids(t, b); !slices.Equal(got, before) {
		t.Errorf("the file has %v, want %v", got, before)
	}
}

// If entries cannot be noted, nothing more is appended: they stay among the
// newest, where they are found.
func TestSettleStopsAtTheFirstNoteThatFails(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	put(t, b, "[]")
	due := []Due{{Entry: bulky("a", 1)}, {Entry: bulky("a", 2)}, {Entry: numbered("a", 3)}}
	failed := errors.New("not noted")
	fails := Settling{
		Wanted: func() (bool, error) { return true, nil },
		Due:    func() ([]Due, error) { return due, nil },
		Note:   func([]Due) error { return failed },
	}
	for range 2 {
		if err := b.Settle(bg(t), fails); !errors.Is(err, failed) {
			t.Errorf("%v", err)
		}
		if got := ids(t, b); !slices.Equal(got, []string{due[0].ID}) {
			t.Errorf("the file has %v, want the first only", got)
		}
	}
	settled(t, b, due...)
	if got, want := ids(t, b), []string{due[0].ID, due[1].ID, due[2].ID}; !slices.Equal(got, want) {
		t.Errorf("the file has %v, want %v", got, want)
	}
}

// An entry that no mailbox accepts does not delay the others.
func TestSettleLeavesOutWhatIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	put(t, b, "[]")
	bad, good := Due{Entry: numbered("", 1)}, Due{Entry: numbered("a", 2)}
	err := b.Settle(bg(t), Settling{
		Wanted: func() (bool, error) { return true, nil },
		Due:    func() ([]Due, error) { return []Due{bad, good}, nil },
		Note:   func([]Due) error { return nil },
	})
	if err == nil {
		t.Error("nothing is said of the message without a sender")
	}
	if got := ids(t, b); !slices.Equal(got, []string{good.ID}) {
		t.Errorf("the file has %v, want the good one", got)
	}
}
