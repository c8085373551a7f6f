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

// R244, R245: of those who merge into one version one wins, whether they share a
// connection or not, and all others are told the version that is.
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
				case team.ReasonOf(err) != ReasonScratchpad || err.Error() != fmt.Sprintf("scratchpad_version_conflict: expected %d current %d", v, v+1):
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

// R245: where there is no run, that is said, and is no conflict to try again.
func TestScratchpadWithoutARun(t *testing.T) {
	t.Parallel()
	db := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	l := New(db, Direct(db))
	_, err := l.MergeScratchpad(ctxFor(t), raw(`{"a":1}`), 0)
	refused(t, err, team.CodeNotFound, ReasonTeamNotFound)
	calls := 0
	_, err = l.UpdateScratchpad(ctxFor(t), func(Scratchpad) (json.RawMessage, error) { calls++; return raw(`{}`), nil })
	refused(t, err, team.CodeNotFound, ReasonTeamNotFound)
	if calls != 0 {
		t.Errorf("computed %d times", calls)
	}
}

// R247: who always comes too late gives up after a bounded number of tries, with the
// conflict; what changes it makes are computed from what is there each time.
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
		must[Scratchpad](t)(l.MergeScratchpad(ctx, raw(`{"other":true}`), p.Version)) // somebody is faster
		return raw(`{"mine":true}`), nil
	})
	refused(t, err, team.CodeConflict, ReasonScratchpad)
	if tries != padAttempts {
		t.Errorf("%d tries", tries)
	}
	if pad := must[Scratchpad](t)(l.Scratchpad(ctx)); string(pad.Doc) != `{"other":true}` || pad.Version != padAttempts {
		t.Errorf("%s v%d", pad.Doc, pad.Version)
	}
}
