package ledger

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// revisions is the number of changes per process.
const revisions = 20

// childRevise adds to the setting of the ledger at args[0], under its name
// args[1]; args[2] is "group" for a supervisor's writer in this process.
func childRevise(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, stopGroup, err := openChild(ctx, args[0], args[2])
	if err != nil {
		return err
	}
	defer stopGroup()
	for i := range revisions {
		key := args[1] + "-" + strconv.Itoa(i)
		if err := Revise(ctx, l, "shared", func(v *map[string]int) (*Event, bool, error) {
			if *v == nil {
				*v = map[string]int{}
			}
			(*v)[key] = len(*v)
			return &Event{What: "shared.added", ID: key}, true, nil
		}); err != nil {
			return fmt.Errorf("add %s: %w", key, err)
		}
	}
	return l.db.Close()
}

// Processes change one setting concurrently, two of them in groups: no change
// is overwritten by one that had not read it, and each has its event, in the
// same order.
func TestReviseLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := New(openAt(t, path), nil)
	var all []*exec.Cmd
	for i, mode := range []string{"group", "", "group", "", ""} {
		cmd := child(t, "revise", path, "p"+strconv.Itoa(i), mode)
		ok(t, cmd.Start())
		all = append(all, cmd)
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	got := map[string]int{}
	must[bool](t)(l.Setting(ctxFor(t), "shared", &got))
	told := must[[]Event](t)(l.Events(ctxFor(t), 0, 0, EventFilter{What: "shared.added"}))
	if want := revisions * len(all); len(got) != want || len(told) != want {
		t.Fatalf("%d changes and %d events are left of %d", len(got), len(told), want)
	}
	for i, e := range told {
		if got[e.ID] != i {
			t.Errorf("event %d is of the change %d", i, got[e.ID])
		}
	}
}

// A change that fails, or changes nothing, writes nothing.
func TestReviseOfNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ok(t, l.Set(ctxFor(t), "shared", []string{"a"}))
	before := must[int64](t)(l.LastEvent(ctxFor(t)))
	wrong := errors.New("wrong")
	for _, want := range []error{nil, wrong} {
		if err := Revise(ctxFor(t), l, "shared", func(v *[]string) (*Event, bool, error) {
			*v = append(*v, "b")
			return &Event{What: "shared.added"}, want != nil, want
		}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	refused(t, Revise(ctxFor(t), l, "", func(*[]string) (*Event, bool, error) { return nil, true, nil }), team.CodeInvalid, "")
	var got []string
	must[bool](t)(l.Setting(ctxFor(t), "shared", &got))
	if after := must[int64](t)(l.LastEvent(ctxFor(t))); len(got) != 1 || after != before {
		t.Errorf("it is %v now, with %d new events", got, after-before)
	}
}
