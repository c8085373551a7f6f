package adapter

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Texts of the programs about a limit, and texts about something else.
func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	claude := func(above string) string {
		return above + "\n────────────\n❯ \n────────────\n  ? for shortcuts\n"
	}
	codex := func(above string) string { return above + "\n\n› \n\n  ? for shortcuts" }
	gemini := func(above string) string {
		return above + "\n▀▀▀▀▀▀▀▀▀▀▀▀\n > Type your message or @path/to/file\n▄▄▄▄▄▄▄▄▄▄▄▄"
	}
	day := func(d, h, m int) time.Time { return time.Date(2026, 11, d, h, m, 0, 0, time.UTC) }
	none := time.Time{}
	for _, c := range []struct {
		name, agent, screen string
		want                team.Activity
		until               time.Time
	}{
		{"an hour", Claude, claude("❯ go\n  ⎿  You've hit your session limit · resets 3pm"), team.Limited, day(21, 15, 0)},
		{"the next day", Claude, claude("❯ go\n  ⎿  You've hit your session limit · resets 1:30am (UTC)"), team.Limited, day(22, 1, 30)},
		{"an hour elsewhere", Claude, claude("❯ go\n● You've hit your limit · resets 5pm (Europe/Berlin)"), team.Limited, day(21, 16, 0)},
		{"a day", Claude, claude("❯ go\n● You've hit your weekly limit · resets Nov 25, 3pm (UTC)"), team.Limited, day(25, 15, 0)},
		{"a year", Claude, claude("❯ go\n● You've hit your weekly limit · resets Jan 2, 2027, 3pm"), team.Limited, time.Date(2027, 1, 2, 15, 0, 0, 0, time.UTC)},
		{"as it was called before", Claude, claude("❯ go\n● Claude usage limit reached. Your limit will reset at 3pm."), team.Limited, day(21, 15, 0)},
		{"without a word of its end", Claude, claude("❯ go\n● You've hit your usage limit"), team.Limited, none},
		{"of an earlier turn", Claude, claude("❯ go\n● You've hit your usage limit\n❯ again\n● done"), team.Idle, none},
		{"it works again", Claude, claude("❯ go\n● You've hit your usage limit\n✻ Thinking… (esc to interrupt)"), team.Working, none},
		{"it only talks of one", Claude, claude("❯ go\n● The test says that you've hit your usage limit, and what follows"), team.Idle, none},
		{"codex", Codex, codex("› go\n■ You’ve hit your usage limit. Upgrade to Pro or try again at 3:05 PM."), team.Limited, day(21, 15, 5)},
		{"codex, wrapped", Codex, codex("› go\n■ You’ve hit your usage limit. Upgrade to Pro or try\nagain at Nov 25th, 2026 3:05\nPM."), team.Limited, day(25, 15, 5)},
		{"codex, a span", Codex, codex("› go\n■ You've hit your usage limit. Try again in 3 days."), team.Limited, day(24, 14, 0)},
		{"codex, later", Codex, codex("› go\n■ You’ve hit your usage limit. Try again later."), team.Limited, none},
		{"gemini", Gemini, gemini("> go\n✕ Usage limit reached for all Pro models.\n  Access resets at 4:05 PM UTC."), team.Limited, day(21, 16, 5)},
		{"gemini, a span", Gemini, gemini("> go\n✕ [API Error: You have exhausted your capacity on this model. Your quota will reset after 1h30m0s.]"), team.Limited, day(21, 15, 30)},
		{"gemini asks what to do", Gemini, "> go\n│ Usage limit reached for all Pro models.\n│ Access resets at 3:30 PM UTC.\n│ ● 1. Keep trying\n│   2. Stop\n", team.Limited, day(21, 15, 30)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ok, err := BuiltinRules(c.agent)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			got := r.Look(c.screen, Version{}, now)
			if got.Activity != c.want || !got.Until.Equal(c.until) {
				t.Errorf("%s until %s by %s %q, want %s until %s", got.Activity, got.Until, got.Rule, got.Lines, c.want, c.until)
			}
			if past := r.LookPast(c.screen, Version{}, now); past.Activity == team.Limited || c.want == team.Limited && past.Activity != team.Idle && past.For != team.WaitQuestion {
				t.Errorf("beside the limit it is %s for %q by %s", past.Activity, past.For, past.Rule)
			}
		})
	}
}

func TestParseUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"12am": now.Add(30 * time.Minute), "12:15 pm": now.Add(12*time.Hour + 45*time.Minute), "23:45": now.Add(15 * time.Minute),
		"2h30m": now.Add(150 * time.Minute), "45 minutes": now.Add(45 * time.Minute), "1 hour": now.Add(time.Hour),
		"Jan 1, 2am": now.Add(150 * time.Minute), "Dec 31, 11:45pm": now.Add(15 * time.Minute),
		"25:00": {}, "13:99": {}, "soon": {}, "Foo 3, 1pm": {}, "": {},
	} {
		if got := parseUntil(s, "Nowhere/Else", now); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	// A date without a year is the nearest one.
	for _, c := range []struct {
		now, s string
		year   int
	}{
		{"2027-01-01", "Dec 31, 11pm", 2026}, {"2027-01-01", "Nov 20, 11pm", 2026}, {"2026-12-31", "Jan 1, 2am", 2027},
		{"2026-11-21", "Feb 1, 2am", 2027}, {"2026-11-21", "Nov 25, 3pm", 2026}, {"2026-11-21", "Sep 25, 3pm", 2026},
	} {
		now, err := time.Parse(time.DateOnly, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := parseUntil(c.s, "", now); got.Year() != c.year {
			t.Errorf("on %s, %q: %s, want %d", c.now, c.s, got, c.year)
		}
	}
}
