package look

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// PutOff puts a need off for a time, or with 0 until it changes. A need that is not what the person has
// seen any more is refused. It removes the records of needs that have gone.
func PutOff(ctx context.Context, t *tool.Team, c tool.Caller, n view.Need, d time.Duration) error {
	x := tool.Later{Need: n.ID(), Seen: n.Seen()}
	list, err := Needs(ctx, t)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(is view.Need) bool { return is.ID() == x.Need && is.Seen() == x.Seen }) {
		return team.Errorf(team.CodeConflict, "%s has changed since it was shown: it was not put off", n.Name())
	}
	now := time.Now()
	if d > 0 {
		x.Until = now.Add(d).UnixMilli()
	}
	if err := t.PutOff(ctx, c, x); err != nil {
		return err
	}
	off, err := t.PutOffs(ctx)
	if err != nil {
		return err
	}
	for _, n := range list {
		if isOff(off[n.ID()], n, now) {
			delete(off, n.ID())
		}
	}
	delete(off, x.Need)
	var over []string
	for need := range off {
		over = append(over, need)
	}
	return t.TakeUp(ctx, c, over...)
}

// TakeUp ends that a need is put off.
func TakeUp(ctx context.Context, t *tool.Team, c tool.Caller, n view.Need) error {
	return t.TakeUp(ctx, c, n.ID())
}

// putOff marks the needs that are put off.
func putOff(ctx context.Context, t *tool.Team, list []view.Need, now time.Time) error {
	off, err := t.PutOffs(ctx)
	for i, n := range list {
		if x, ok := off[n.ID()]; ok && isOff(x, n, now) {
			list[i].Later, list[i].Until = true, stamp(x.Until)
		}
	}
	return err
}

func isOff(x tool.Later, n view.Need, now time.Time) bool {
	return x.Seen == n.Seen() && (x.Until == 0 || now.UnixMilli() < x.Until)
}

// laterDue returns the time until the first need is no longer put off, 0 for never.
func laterDue(list []view.Need, now time.Time) time.Duration {
	var due time.Duration
	for _, n := range list {
		if n.Later && !n.Until.IsZero() {
			due = sooner(due, max(time.Millisecond, n.Until.Sub(now)))
		}
	}
	return due
}

// sooner returns the shorter time, where 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// putOffDue is laterDue without a look at the needs.
func putOffDue(ctx context.Context, t *tool.Team, now time.Time) (due time.Duration, err error) {
	off, err := t.PutOffs(ctx)
	for _, x := range off {
		if x.Until > now.UnixMilli() {
			due = sooner(due, max(time.Millisecond, stamp(x.Until).Sub(now)))
		}
	}
	return due, err
}
