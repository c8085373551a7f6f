package inbox

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// readBy reads the mailbox as another program would.
func readBy(t *testing.T, b *Box) string {
	t.Helper()
	if noAccessTime == 0 {
		t.Skip("no access times on this system")
	}
	text := content(t, b)
	if info, err := os.Stat(b.Path()); err != nil {
		t.Fatal(err)
	} else if read, _ := accessed(info); read.Unix() == 0 {
		t.Skip("the file system keeps no access times")
	}
	return text
}

// What a mailbox shows about its three messages after another program has
// changed it.
func TestTraces(t *testing.T) {
	t.Parallel()
	const stands, lost = "stands", ""
	in := func(b *Box, text string) error { return os.WriteFile(b.Path(), []byte(text), 0o600) }
	over := func(b *Box, text string) error {
		return errors.Join(os.WriteFile(b.Path()+".new", []byte(text), 0o600), os.Rename(b.Path()+".new", b.Path()))
	}
	change := func(text string, keep func(i int, e map[string]any) bool) string {
		var all []map[string]any
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Error(err)
		}
		kept := []map[string]any{}
		for i, e := range all {
			if keep(i, e) {
				kept = append(kept, e)
			}
		}
		out, err := json.MarshalIndent(kept, "", "  ")
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	for name, c := range map[string]struct {
		do   func(*testing.T, *Box) error
		want []string
	}{
		"nothing": {func(*testing.T, *Box) error { return nil }, []string{stands, stands, stands}},
		"ids dropped, one read": {func(t *testing.T, b *Box) error {
			return in(b, change(content(t, b), func(i int, e map[string]any) bool {
				delete(e, "msg_id")
				e["read"] = i == 0
				return true
			}))
		}, []string{TakenMarked, stands, stands}},
		"the oldest taken out": {func(t *testing.T, b *Box) error {
			return over(b, change(content(t, b), func(i int, _ map[string]any) bool { return i > 0 }))
		}, []string{TakenRemoved, stands, stands}},
		"an older copy": {func(t *testing.T, b *Box) error {
			return in(b, change(content(t, b), func(i int, _ map[string]any) bool { return i == 0 }))
		}, []string{stands, lost, lost}},
		"an older copy renamed over": {func(t *testing.T, b *Box) error {
			return over(b, change(content(t, b), func(i int, _ map[string]any) bool { return i == 0 }))
		}, []string{stands, lost, lost}},
		"an empty array by accident": {func(_ *testing.T, b *Box) error { return in(b, "[]") }, []string{lost, lost, lost}},
		"an empty array by accident, then read": {func(t *testing.T, b *Box) error {
			err := in(b, "[]")
			readBy(t, b)
			return err
		}, []string{lost, lost, lost}},
		"read and cleared": {func(t *testing.T, b *Box) error {
			readBy(t, b)
			return in(b, "[]")
		}, []string{TakenEmptied, TakenEmptied, TakenEmptied}},
		"read and truncated": {func(t *testing.T, b *Box) error {
			readBy(t, b)
			return in(b, "")
		}, []string{lost, lost, lost}},
		"read and cleared by a rename": {func(t *testing.T, b *Box) error {
			readBy(t, b)
			return over(b, "[]")
		}, []string{TakenEmptied, TakenEmptied, TakenEmptied}},
		"an empty array renamed over by accident": {func(_ *testing.T, b *Box) error { return over(b, "[]") }, []string{lost, lost, lost}},
		"read by us alone": {func(t *testing.T, b *Box) error {
			entries(t, b)
			return in(b, "[]")
		}, []string{lost, lost, lost}},
		"deleted": {func(t *testing.T, b *Box) error {
			readBy(t, b)
			return os.Remove(b.Path())
		}, []string{lost, lost, lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := newBox(t)
			var want []Expected
			for i := range 3 {
				e := numbered("a", i)
				e.Timestamp = Timestamp(time.UnixMilli(int64(1000 * i)))
				add(t, b, e)
				want = append(want, Expected{Entry: e, Since: time.Now().Add(-90 * time.Minute)})
			}
			if err := c.do(t, b); err != nil {
				t.Fatal(err)
			}
			var got []string
			_, err := b.Reconcile(bg(t), "", want, func(traces []Trace) ([]Entry, error) {
				for _, tr := range traces {
					switch {
					case tr.Taken != "":
						got = append(got, tr.Taken)
					case tr.Stands:
						got = append(got, stands)
					default:
						got = append(got, lost)
					}
				}
				return nil, nil
			})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// Two messages with the same sender, text and time count as two.
func TestTracesCountsWhatIsTheSame(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	e := Entry{From: "a", Text: "x", Timestamp: Timestamp(time.UnixMilli(1)), ID: "1"}
	f := e
	f.ID = "2"
	put(t, b, strings.ReplaceAll(`[{"from":"a","text":"x","timestamp":"T","read":false}]`, "T", e.Timestamp))
	traces, err := b.Traces([]Expected{{Entry: e}, {Entry: f}})
	if err != nil || !traces[0].Stands || traces[1].Stands {
		t.Errorf("%+v, %v", traces, err)
	}
}
