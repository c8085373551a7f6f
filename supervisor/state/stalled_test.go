package state

import (
	"os"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A working member without output for ten minutes has stalled; other members have not.
func TestStalled(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	now := time.UnixMilli(1_800_000_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	works := ledger.Member{Name: "a", Observed: team.Running, Activity: team.Working, ActivityAt: ago(time.Hour), StartedAt: ago(2 * time.Hour)}
	with := func(f func(*ledger.Member)) ledger.Member { m := works; f(&m); return m }
	for _, c := range []struct {
		what string
		m    ledger.Member
		log  time.Duration // ago; 0: there is none
		want time.Duration // ago; 0: it has not stalled
	}{
		{"silent for as long as it works", works, 90 * time.Minute, time.Hour},
		{"silent since its last output", works, 10 * time.Minute, 10 * time.Minute},
		{"it puts something out", works, 10*time.Minute - time.Second, 0},
		{"it has begun something else", with(func(m *ledger.Member) { m.ActivityAt = ago(time.Minute) }), time.Hour, 0},
		{"just started again", with(func(m *ledger.Member) { m.StartedAt = ago(time.Minute) }), time.Hour, 0},
		{"idle", with(func(m *ledger.Member) { m.Activity = team.Idle }), time.Hour, 0},
		{"unknown", with(func(m *ledger.Member) { m.Activity = team.ActivityUnknown }), time.Hour, 0},
		{"waits for a person", with(func(m *ledger.Member) { m.Activity = team.Waiting }), time.Hour, 0},
		{"exited", with(func(m *ledger.Member) { m.Observed = team.Exited }), time.Hour, 0},
		{"paused", with(func(m *ledger.Member) { m.Reason = team.WhyPaused }), time.Hour, 0},
		{"nobody sees its output", works, 0, 0},
	} {
		b := l.Bundle("a")
		if err := os.RemoveAll(string(b)); err != nil {
			t.Fatal(err)
		}
		if c.log > 0 {
			if err := os.MkdirAll(string(b), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(b.Log(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(b.Log(), time.Time{}, now.Add(-c.log)); err != nil {
				t.Fatal(err)
			}
		}
		got := Stalled(l, c.m, now)
		if c.want == 0 && !got.IsZero() || c.want > 0 && !got.Equal(now.Add(-c.want)) {
			t.Errorf("%s: stalled since %v; want %v ago", c.what, got, c.want)
		}
	}
}

// The time of a sleep is not a member's silence, nor is that by which the clock was set back.
func TestStalledAfterJump(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	b := l.Bundle("a")
	for _, d := range []string{string(b), l.Locks()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	now := time.UnixMilli(1_800_000_000_000)
	touch := func(path string, ago time.Duration) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, now.Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what               string
		sign, jump, stalls time.Duration // ago; stalls 0: it has not
	}{
		{"just after a sleep", 10 * time.Hour, time.Minute, 0},
		{"long after it", 10 * time.Hour, 11 * time.Minute, 11 * time.Minute},
		{"a sleep before its last sign", 12 * time.Minute, time.Hour, 12 * time.Minute},
		{"just after the clock was set back", -2 * time.Hour, time.Minute, 0},
		{"long after that", -2 * time.Hour, 11 * time.Minute, 11 * time.Minute},
	} {
		touch(b.Log(), c.sign)
		touch(l.ClockJump(), c.jump)
		at := now.Add(-c.sign).UnixMilli()
		m := ledger.Member{Name: "a", Observed: team.Running, Activity: team.Working, ActivityAt: at, StartedAt: at}
		got, due := Stalled(l, m, now), StallDue(l, []ledger.Member{m}, now)
		switch {
		case c.stalls == 0 && (!got.IsZero() || due != StalledAfter-c.jump):
			t.Errorf("%s: stalled since %v, due in %s", c.what, got, due)
		case c.stalls != 0 && !got.Equal(now.Add(-c.stalls)):
			t.Errorf("%s: stalled since %v", c.what, got)
		}
	}
}

// A screen is woken when the next member will have stalled, and from time to time while one has.
func TestStallDue(t *testing.T) {
	t.Parallel()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	now := time.UnixMilli(1_800_000_000_000)
	works := func(name string, silent time.Duration) ledger.Member {
		b := l.Bundle(name)
		if err := os.MkdirAll(string(b), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.Log(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(b.Log(), time.Time{}, now.Add(-silent)); err != nil {
			t.Fatal(err)
		}
		at := now.Add(-time.Hour).UnixMilli()
		return ledger.Member{Name: name, Observed: team.Running, Activity: team.Working, ActivityAt: at, StartedAt: at}
	}
	idle := works("idle", time.Hour)
	idle.Activity = team.Idle
	three, seven := works("three", 3*time.Minute), works("seven", 7*time.Minute)
	gone := works("gone", 11*time.Minute)
	for _, c := range []struct {
		members []ledger.Member
		want    time.Duration
	}{
		{nil, 0},
		{[]ledger.Member{idle}, 0},
		{[]ledger.Member{idle, three}, 7 * time.Minute},
		{[]ledger.Member{three, seven}, 3 * time.Minute},
		{[]ledger.Member{seven, gone, three}, time.Minute},
	} {
		if got := StallDue(l, c.members, now); got != c.want {
			t.Errorf("%d members: %v; want %v", len(c.members), got, c.want)
		}
	}
}
