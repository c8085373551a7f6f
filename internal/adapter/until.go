package adapter

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
)

// clock matches a time of day, preceded by a date if a limit ends on another day.
var clock = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:at\s+)?(?:([a-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?(?:,| at)? )?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?$`)
})

// span matches a duration in words.
var span = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(\d+)\s*(minute|hour|day)s?$`) })

// LimitIn reports whether a text of a CLI says that a usage limit is reached, and the limit's end;
// zero if the text does not name it. The text is matched against the patterns for the CLI's
// screen.
func LimitIn(cli, words string, now time.Time) (until time.Time, ok bool) {
	rules, ok, err := BuiltinRules(cli)
	if err != nil || !ok {
		return time.Time{}, false
	}
	seen := rules.Look(words, Version{}, now)
	return seen.Until, seen.Activity == team.Limited
}

// parseUntil parses a time of day ("3pm", "15:30"), which means the next such time, a date and a
// time ("Nov 25, 3pm", "Nov 25th, 2026 3:05 PM"), which without a year means the nearest one, or a
// duration ("2h30m", "45 minutes"); zero if it is none of them. An unknown zone means that of now.
func parseUntil(s, zone string, now time.Time) time.Time {
	s = strings.Join(strings.Fields(s), " ")
	if d, err := time.ParseDuration(strings.ReplaceAll(s, " ", "")); err == nil && d > 0 {
		return now.Add(d)
	}
	if m := span().FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}
		}
		return now.Add(time.Duration(n) * map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[strings.ToLower(m[2])[0]])
	}
	m := clock().FindStringSubmatch(s)
	if m == nil {
		return time.Time{}
	}
	if zone != "" {
		if at, err := time.LoadLocation(zone); err == nil {
			now = now.In(at)
		}
	}
	hour, _ := strconv.Atoi(m[4]) // digits, by the pattern
	minute, _ := strconv.Atoi(m[5])
	switch strings.ToLower(m[6]) {
	case "pm":
		hour = hour%12 + 12
	case "am":
		hour %= 12
	}
	if hour > 23 || minute > 59 {
		return time.Time{}
	}
	if m[1] == "" {
		t := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
		if !t.After(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t
	}
	month, err := time.Parse("Jan", strings.ToUpper(m[1][:1])+strings.ToLower(m[1][1:]))
	if err != nil {
		return time.Time{}
	}
	day, _ := strconv.Atoi(m[2])
	in := func(year int) time.Time {
		return time.Date(year, month.Month(), day, hour, minute, 0, 0, now.Location())
	}
	if year, err := strconv.Atoi(m[3]); err == nil {
		return in(year)
	}
	// The nearest such date: a text that has stayed on the screen since the old year means that one.
	t := in(now.Year())
	for _, other := range []time.Time{in(now.Year() - 1), in(now.Year() + 1)} {
		if other.Sub(now).Abs() < t.Sub(now).Abs() {
			t = other
		}
	}
	return t
}
