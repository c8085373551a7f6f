package state

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func seen(tier team.Tier, at time.Duration, a team.Activity) team.Observation {
	return team.Observation{Tier: tier, At: t0.Add(at), Activity: a, Source: tier.String()}
}

// ends is a hook's report that the turn is over, at which a dialog may appear.
func ends(at time.Duration) team.Observation {
	o := seen(team.TierHook, at, team.Idle)
	o.Confirm = true
	return o
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const s = time.Second
	cases := []struct {
		name string
		obs  []team.Observation
		want team.Activity
		by   team.Tier
	}{
		{"nothing was seen", nil, team.ActivityUnknown, 0},
		{"a screen that says nothing is not idle", []team.Observation{seen(team.TierScreen, 0, team.ActivityUnknown)}, team.ActivityUnknown, 0},
		{"the screen alone", []team.Observation{seen(team.TierScreen, 0, team.Idle)}, team.Idle, team.TierScreen},
		{"a hook against a screen of the same time", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierScreen, s, team.Idle)}, team.Working, team.TierHook},
		{"Esc: no hook, but the screen is at rest", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierScreen, 3*s, team.Idle)}, team.Idle, team.TierScreen},
		{"then a hook again", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierScreen, 3*s, team.Idle), seen(team.TierHook, 4*s, team.Working)}, team.Working, team.TierHook},
		{"a dialog that no hook tells", []team.Observation{seen(team.TierHook, 0, team.Idle), seen(team.TierScreen, 3*s, team.Waiting)}, team.Waiting, team.TierScreen},
		{"a screen of which nothing is known, after a turn", []team.Observation{seen(team.TierHook, 0, team.Idle), seen(team.TierScreen, s, team.ActivityUnknown)}, team.ActivityUnknown, team.TierScreen},
		{"one that was there before its end", []team.Observation{seen(team.TierScreen, 0, team.ActivityUnknown), seen(team.TierHook, 9*s, team.Idle)}, team.ActivityUnknown, team.TierScreen},
		{"a dialog that was there before its end", []team.Observation{seen(team.TierScreen, 0, team.Waiting), seen(team.TierHook, 9*s, team.Idle)}, team.Waiting, team.TierScreen},
		{"and is gone", []team.Observation{seen(team.TierScreen, 0, team.Waiting), seen(team.TierHook, 9*s, team.Idle), seen(team.TierScreen, 10*s, team.Idle)}, team.Idle, team.TierHook},
		{"a screen of which nothing is known, of a program with a channel", []team.Observation{seen(team.TierChannel, 0, team.Idle), seen(team.TierScreen, 3*s, team.ActivityUnknown)}, team.Idle, team.TierChannel},
		{"a screen of which nothing is known, amid a turn", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierScreen, 3*s, team.ActivityUnknown)}, team.Working, team.TierHook},
		{"a screen does not make an idle agent work", []team.Observation{seen(team.TierHook, 0, team.Idle), seen(team.TierScreen, 9*s, team.Working)}, team.Idle, team.TierHook},
		{"a dialog that was dismissed", []team.Observation{seen(team.TierHook, 0, team.Waiting), seen(team.TierScreen, 9*s, team.Working)}, team.Working, team.TierScreen},
		{"a dialog of a program with a channel, whose screen does not show it", []team.Observation{seen(team.TierChannel, 0, team.Waiting), seen(team.TierScreen, 9*s, team.Working)}, team.Waiting, team.TierChannel},
		{"a dialog whose end the channel tells", []team.Observation{seen(team.TierChannel, 0, team.Waiting), seen(team.TierScreen, s, team.Waiting), seen(team.TierChannel, 9*s, team.Idle)}, team.Idle, team.TierChannel},
		{"at rest because of a limit", []team.Observation{seen(team.TierHook, 0, team.Limited), seen(team.TierChannel, s, team.Idle)}, team.Limited, team.TierHook},
		{"a screen that shows a limited agent at rest", []team.Observation{seen(team.TierHook, 0, team.Limited), seen(team.TierScreen, 9*s, team.Idle)}, team.Limited, team.TierHook},
		{"a turn after a limit", []team.Observation{seen(team.TierScreen, 0, team.Limited), seen(team.TierHook, 3*s, team.Idle)}, team.Idle, team.TierHook},
		{"a limited agent that works", []team.Observation{seen(team.TierChannel, 0, team.Limited), seen(team.TierScreen, 9*s, team.Working)}, team.Working, team.TierScreen},
		{"the channel over hooks", []team.Observation{seen(team.TierHook, s, team.Working), seen(team.TierChannel, s, team.Idle)}, team.Idle, team.TierChannel},
		{"unknown of a better tier hides nothing", []team.Observation{seen(team.TierChannel, 9*s, team.ActivityUnknown), seen(team.TierHook, 0, team.Idle)}, team.Idle, team.TierHook},
		{"late news of one tier", []team.Observation{seen(team.TierHook, 2*s, team.Idle), seen(team.TierHook, s, team.Working)}, team.Idle, team.TierHook},
		{"the end of a turn that may bring a dialog, before the screen was read", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierScreen, s, team.Working), ends(2 * s)}, team.Working, team.TierHook},
		{"before it was read at all", []team.Observation{ends(0)}, team.Working, team.TierHook},
		{"whose screen shows what was before", []team.Observation{seen(team.TierScreen, 0, team.Idle), ends(2 * s), seen(team.TierScreen, 3*s, team.Working)}, team.Working, team.TierHook},
		{"whose screen shows it at rest", []team.Observation{seen(team.TierScreen, 0, team.Working), ends(2 * s), seen(team.TierScreen, 3*s, team.Idle)}, team.Idle, team.TierHook},
		{"whose screen shows a dialog", []team.Observation{seen(team.TierScreen, 0, team.Working), ends(2 * s), seen(team.TierScreen, 3*s, team.Waiting)}, team.Waiting, team.TierScreen},
		{"whose dialog was there first", []team.Observation{seen(team.TierScreen, s, team.Waiting), ends(2 * s)}, team.Waiting, team.TierScreen},
		{"whose screen is misread", []team.Observation{ends(0), seen(team.TierScreen, 3*s, team.Working)}, team.Idle, team.TierHook},
		{"a screen that does not show the turn of a program with a channel", []team.Observation{seen(team.TierChannel, 0, team.Working), seen(team.TierScreen, 9*s, team.Idle)}, team.Working, team.TierChannel},
		{"the end of a turn that a file beside hooks reports late", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierChannel, 0, team.Working), seen(team.TierScreen, 9*s, team.Idle)}, team.Idle, team.TierScreen},
		{"nothing overrules the process", []team.Observation{seen(team.TierProcess, 0, team.Working), seen(team.TierScreen, 99*s, team.Waiting)}, team.Working, team.TierProcess},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var e Engine
			for _, o := range c.obs {
				e.Take(o)
			}
			v := e.Verdict(t0.Add(time.Minute))
			by := ""
			if c.by != 0 {
				by = c.by.String()
			}
			if v.Activity != c.want || v.Tier != by {
				t.Errorf("%s by %q, want %s by %q", v.Activity, v.Tier, c.want, by)
			}
		})
	}
}

// programs has the sources by which each program reports its state, the best one first. Each can end
// while its terminal is open.
var programs = map[string][]team.Tier{
	team.AgentClaude:                    {team.TierChannel, team.TierHook}, // a file for each process, and hooks
	"a Claude Code that writes no file": {team.TierHook},
	team.AgentCodex:                     {team.TierChannel},
	"a Codex without its app-server":    {team.TierHook},
	team.AgentGemini:                    {team.TierHook},
	team.AgentOpencode:                  {team.TierChannel},
}

// TestSilentSource ends the sources of each program, and has its terminal say each state, before and
// after: none is idle by its terminal, and an unknown state has its reason.
func TestSilentSource(t *testing.T) {
	t.Parallel()
	const s = time.Second
	terminal := func(f func(tier team.Tier, says team.Activity, at time.Duration)) {
		for _, tier := range []team.Tier{team.TierTitle, team.TierScreen} {
			for _, says := range []team.Activity{team.Idle, team.Working, team.Waiting, team.Limited, team.ActivityUnknown, ""} {
				f(tier, says, s)
				f(tier, says, 99*s)
			}
		}
	}
	for name, own := range programs {
		for _, was := range []team.Activity{"", team.Working, team.Idle, team.Waiting} {
			terminal(func(tier team.Tier, says team.Activity, at time.Duration) {
				var e Engine
				for _, o := range own {
					e.Take(seen(o, 0, was))
					e.Take(seen(o, 10*s, team.ActivityUnknown))
				}
				e.Take(seen(tier, at, says))
				want, why := says, ""
				if says == team.Idle || says == "" || says == team.ActivityUnknown {
					want, why = team.ActivityUnknown, team.WhySilent+own[0].String()
				}
				if v := e.Verdict(t0.Add(time.Hour)); v.Activity != want || Silent(v) != why {
					t.Errorf("%s was %q, and its %s says %q at %s: %s, %q, want %s, %q", name, was, tier, says, at, v.Activity, Silent(v), want, why)
				}
				e.Take(seen(own[0], 100*s, team.Idle))
				if v := e.Verdict(t0.Add(time.Hour)); len(own) == 1 && says == team.Idle && (v.Activity != team.Idle || Silent(v) != "") {
					t.Errorf("%s reports again: %s, %q", name, v.Activity, Silent(v))
				}
			})
		}
		terminal(func(tier team.Tier, says team.Activity, at time.Duration) {
			var e Engine
			for _, o := range own {
				e.Take(seen(o, 0, team.ActivityUnknown))
			}
			e.Take(seen(tier, at, says))
			if v := e.Verdict(t0.Add(time.Hour)); v.Ready != (says == team.Working) {
				t.Errorf("%s has reported nothing yet, and its %s says %q: ready is %v", name, tier, says, v.Ready)
			}
		})
	}
	for name, obs := range map[string][]team.Observation{
		"a program without a source of its own": nil,
		"a program whose hooks are off":         {seen(team.TierHook, 0, team.ActivityUnknown), {Tier: team.TierScreen, At: t0, NoHooks: new(true)}},
	} {
		var e Engine
		for _, o := range append(obs, seen(team.TierScreen, s, team.Idle)) {
			e.Take(o)
		}
		if v := e.Verdict(t0.Add(time.Hour)); v.Activity != team.Idle {
			t.Errorf("%s is %s by its screen", name, v.Activity)
		}
	}
}

func TestLimitIsOver(t *testing.T) {
	t.Parallel()
	var e Engine
	o := seen(team.TierScreen, 0, team.Limited)
	o.Until = t0.Add(time.Hour)
	e.Take(o)
	if v := e.Verdict(t0.Add(time.Minute)); v.Activity != team.Limited || !v.Until.Equal(o.Until) {
		t.Errorf("before: %+v", v)
	}
	if v := e.Verdict(o.Until); v.Activity != team.ActivityUnknown {
		t.Errorf("after its end it is %s: nobody has seen it idle", v.Activity)
	}
}

// An ended limit stays ended, whatever is still seen of it; a limit first seen later is another
// one.
func TestLimitThatWasEnded(t *testing.T) {
	t.Parallel()
	e := Engine{Ended: t0.Add(time.Minute)}
	o := seen(team.TierScreen, time.Hour, team.Limited)
	for since, want := range map[time.Duration]team.Activity{0: team.ActivityUnknown, time.Minute: team.ActivityUnknown, 2 * time.Minute: team.Limited} {
		o.Since = t0.Add(since)
		e.Take(o)
		if v := e.Verdict(t0.Add(2 * time.Hour)); v.Activity != want {
			t.Errorf("seen first after %s: %s, want %s", since, v.Activity, want)
		}
	}
}

func TestReadyAndReport(t *testing.T) {
	t.Parallel()
	var e Engine
	e.Take(seen(team.TierScreen, 0, team.Waiting))
	if e.Verdict(t0).Ready {
		t.Error("an agent in a dialog is ready")
	}
	for i := range 3 * keep {
		e.Take(seen(team.TierHook, time.Duration(i)*time.Second, team.Working))
	}
	r := e.Report(t0)
	if !r.Ready || len(r.Recent) != keep || len(r.Tiers) != 2 || r.Tiers[0].Tier != team.TierHook {
		t.Errorf("report: ready %v, %d recent, %d tiers", r.Ready, len(r.Recent), len(r.Tiers))
	}
}

// The error of the last turn is reported for an agent at rest until another turn begins.
func TestFailedTurn(t *testing.T) {
	t.Parallel()
	const s = time.Second
	fails := func(tier team.Tier, at time.Duration, a team.Activity) team.Observation {
		o := seen(tier, at, a)
		o.Failed = "no"
		return o
	}
	for _, c := range []struct {
		name string
		obs  []team.Observation
		want string
	}{
		{"by its hook", []team.Observation{seen(team.TierHook, 0, team.Working), fails(team.TierHook, s, team.Idle)}, "no"},
		{"said before it is at rest", []team.Observation{seen(team.TierChannel, 0, team.Working), fails(team.TierChannel, s, ""), seen(team.TierChannel, s, team.Idle)}, "no"},
		{"said after it is at rest", []team.Observation{seen(team.TierHook, 0, team.Working), seen(team.TierChannel, 2*s, team.Idle), fails(team.TierHook, s, team.Idle)}, "no"},
		{"it works on", []team.Observation{fails(team.TierHook, 0, team.Idle), seen(team.TierHook, s, team.Working)}, ""},
		{"the next turn ended well", []team.Observation{fails(team.TierHook, 0, team.Idle), seen(team.TierHook, s, team.Working), seen(team.TierHook, 2*s, team.Idle)}, ""},
		{"heard of after the next turn began", []team.Observation{seen(team.TierHook, 2*s, team.Working), seen(team.TierHook, 3*s, team.Idle), fails(team.TierChannel, s, "")}, ""},
		{"a screen that lags behind", []team.Observation{fails(team.TierHook, 0, team.Idle), seen(team.TierScreen, s, team.Working)}, "no"},
		{"a screen that lags far behind", []team.Observation{fails(team.TierHook, 0, team.Idle), seen(team.TierScreen, 9*s, team.Working)}, "no"},
		{"a turn that only the screen shows", []team.Observation{fails(team.TierHook, 0, ""), seen(team.TierScreen, 9*s, team.Working), seen(team.TierScreen, 20*s, team.Idle)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Engine
			for _, o := range c.obs {
				e.Take(o)
			}
			if v := e.Verdict(t0.Add(time.Minute)); v.Failed != c.want {
				t.Errorf("%s, failed of %q, want %q", v.Activity, v.Failed, c.want)
			}
		})
	}
}

// TestAnswered checks that a dialog that is read again right after its answer is no new one, and
// that any other one counts.
func TestAnswered(t *testing.T) {
	t.Parallel()
	const s = time.Second
	dialog := func(at time.Duration, words string) team.Observation {
		o := seen(team.TierScreen, at, team.Waiting)
		o.For, o.Evidence = team.WaitPermission, []string{words}
		return o
	}
	before := []team.Observation{seen(team.TierChannel, 0, team.Working), seen(team.TierHook, 0, team.Waiting), dialog(5*s, "touch a?")}
	at := 60 * s // of the answer
	for _, c := range []struct {
		name   string
		before []team.Observation
		after  []team.Observation
		now    time.Duration
		want   team.Activity
	}{
		{"at once", before, nil, at, team.Working},
		{"the same screen read again", before, []team.Observation{dialog(at+s, "touch a?")}, at + s, team.Working},
		{"after a hook that works", before, []team.Observation{seen(team.TierHook, at, team.Working), dialog(at+4*s, "touch a?")}, at + 4*s, team.Working},
		{"one that stays", before, []team.Observation{dialog(at+s, "touch a?")}, at + answerShows, team.Waiting},
		{"one that stays and is not read again", before, nil, at + answerShows, team.Waiting},
		{"another one", before, []team.Observation{dialog(at+s, "touch b?")}, at + s, team.Waiting},
		{"the same one after another screen", before, []team.Observation{seen(team.TierScreen, at+s, team.Working), dialog(at+3*s, "touch a?")}, at + 3*s, team.Waiting},
		{"one that a channel reports", before, []team.Observation{seen(team.TierChannel, at+s, team.Waiting)}, at + s, team.Waiting},
		{"one that was not read before", before[:2], []team.Observation{dialog(at+s, "touch a?")}, at + s, team.Working},
		{"one that was not read before, read once more", before[:2], []team.Observation{dialog(at+4*s, "touch b?")}, at + 4*s, team.Waiting},
		{"a hook alone", before[1:2], nil, at, team.Working},
	} {
		var e Engine
		for _, o := range c.before {
			e.Take(o)
		}
		if until := e.Answered(t0.Add(at)); !until.Equal(t0.Add(at + answerShows)) {
			t.Errorf("%s: it counts as closed until %v", c.name, until)
		}
		for _, o := range c.after {
			e.Take(o)
		}
		if v := e.Verdict(t0.Add(c.now)); v.Activity != c.want {
			t.Errorf("%s: %s by %s, want %s", c.name, v.Activity, v.Tier, c.want)
		}
	}
}
