package inbox

import (
	"testing"
)

// A repair marks the mailbox, and restoring what one repair lost removes only
// that repair's mark.
func TestRepairMarksWhatIsLacking(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	damage := func() string {
		t.Helper()
		put(t, b, `[{"from":"a","text":"1"},`)
		if c, err := b.Repair(bg(t)); err != nil || c == nil {
			t.Fatal(c, err)
		}
		mark, lacks := b.Lacks()
		if !lacks {
			t.Fatal("not marked")
		}
		return mark
	}
	whole := func(mark string, want bool) {
		t.Helper()
		ok, err := b.Whole(bg(t), mark)
		if _, lacks := b.Lacks(); err != nil || ok != want || lacks == want {
			t.Fatalf("whole %v, still lacks %v: %v", ok, lacks, err)
		}
	}
	first := damage()
	if again, err := b.Lack(bg(t)); err != nil || again != first {
		t.Fatalf("mark %q became %q: %v", first, again, err)
	}
	second := damage()
	whole(first, false) // the second damage may have lost what was restored
	whole(second, true)
	whole(second, true) // nothing to remove
	mark, err := b.Lack(bg(t))
	if _, lacks := b.Lacks(); err != nil || !lacks {
		t.Fatal("not marked", err)
	}
	whole(mark, true)
}
