package ledger

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Of several merges into one version one succeeds, whether or not they share a
// connection, and the others get the current version.
func TestOneMergeWinsPerVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := openAt(t, path)
	first := New(db, Direct(db))
	ctx := ctxFor(t)
	must[TeamRow](t)(first.CreateTeam(ctx, TeamRow{Key: "k", LeadSession: "s"}))
	led := []*Ledger{first}
	for range 3 {
		db := openAt(t, path)
		led = append(led, New(db, Direct(db)))
	}
	const each, versions = 4, 5
	for v := range int64(versions) {
		var won atomic.Int64
		var all sync.WaitGroup
		for i := range each * len(led) {
			all.Go(func() {
				pad, err := led[i%len(led)].MergeScratchpad(ctx, raw(fmt.Sprintf(`{"by":%d}`, i)), v)
				switch {
				case err == nil && pad.Version == v+1 && string(pad.Doc) == fmt.Sprintf(`{"by":%d}`, i):
					won.Add(1)
				case err == nil:
					t.Errorf("%+v", pad)
				case team.ReasonOf(err) != team.ReasonScratchpad || err.Error() != fmt.Sprintf("scratchpad_version_conflict: expected %d current %d", v, v+1):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d merges into version %d", won.Load(), v)
		}
	}
}

// A missing run is reported as such, not as a conflict to retry.
func TestScratchpadWithoutARun(t *testing.T) {
	t.Parallel()
	db := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	l := New(db, Direct(db))
	_, err := l.MergeScratchpad(ctxFor(t), raw(`{"a":1}`), 0)
	refused(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	calls := 0
	_, err = l.UpdateScratchpad(ctxFor(t), func(Scratchpad) (json.RawMessage, error) { calls++; return raw(`{}`), nil })
	refused(t, err, team.CodeNotFound, team.ReasonTeamNotFound)
	if calls != 0 {
		t.Errorf("computed %d times", calls)
	}
}

// A writer that is always too late gives up after a bounded number of attempts,
// with the conflict; each attempt computes its change from the current
// document.
func TestScratchpadGivesUp(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := ctxFor(t)
	tries := int64(0)
	_, err := l.UpdateScratchpad(ctx, func(p Scratchpad) (json.RawMessage, error) {
		if p.Version != tries {
			t.Errorf("try %d starts from version %d", tries, p.Version)
		}
		tries++
		must[Scratchpad](t)(l.MergeScratchpad(ctx, raw(`{"other":true}`), p.Version)) // another writer is faster
		return raw(`{"mine":true}`), nil
	})
	refused(t, err, team.CodeConflict, team.ReasonScratchpad)
	if tries != padAttempts {
		t.Errorf("%d tries", tries)
	}
	if pad := must[Scratchpad](t)(l.Scratchpad(ctx)); string(pad.Doc) != `{"other":true}` || pad.Version != padAttempts {
		t.Errorf("%s v%d", pad.Doc, pad.Version)
	}
}
