package adapter

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/teamctl/teamctl/team"
)

//go:embed rules/*.yaml
var ruleFiles embed.FS

// Rules are the screen patterns of one agent kind. They are data: embedded for the built-in kinds,
// and replaced as a whole by $TEAMCTL_HOME/rules/<agent>.yaml. The first matching rule counts.
type Rules struct {
	Agent string `yaml:"agent"`
	// Turn matches the line that begins the newest turn; the lines above it are the past and match
	// nothing.
	Turn string `yaml:"turn"`
	// Input matches the line of the input box; its group "text" is the typed text. Below matches
	// the line under an input box of one line; any other line there continues the typed text. Above
	// matches one of the three lines over the box; without such a line, the line is not an input
	// box but the beginning of a turn.
	Input string `yaml:"input"`
	Below string `yaml:"below"`
	Above string `yaml:"above"`
	// Inside matches each line after the first of an input box that grows with its text.
	Inside string `yaml:"inside"`
	// Frame matches the line under an input box with more lines than its text: Input matches all of
	// them, and the last one is not part of the text. Turn then matches each line of the text that
	// begins a turn.
	Frame string `yaml:"frame"`
	// Empty are patterns for texts that an empty input box shows.
	Empty []string `yaml:"empty"`
	// Home are patterns that each match some line of a screen without a conversation.
	Home []string `yaml:"home"`
	// Enter says how a pasted text is sent.
	Enter Enter  `yaml:"enter"`
	List  []Rule `yaml:"rules"`
	// Titles read the terminal's title.
	Titles []TitleRule `yaml:"titles"`

	turn, input, below, above, inside, frame *regexp.Regexp
	empty, home                              []*regexp.Regexp
}

// Enter describes what a CLI needs between a paste and its Enter.
type Enter struct {
	Wait  time.Duration `yaml:"wait"`  // after the text has appeared
	Plain bool          `yaml:"plain"` // a single line: newlines become spaces
}

// Rule describes one thing that a screen may show.
type Rule struct {
	ID       string   `yaml:"id"`
	Versions string   `yaml:"versions"` // ">=2.1.34 <2.2.0"; empty: all
	State    string   `yaml:"state"`    // working, idle, waiting, limited, unknown
	For      string   `yaml:"for"`
	Ready    bool     `yaml:"ready"`  // a match means that the agent takes messages
	Bottom   int      `yaml:"bottom"` // match only the last N lines of the newest turn; 0: all of it
	Match    []string `yaml:"match"`  // each must match some line
	Not      []string `yaml:"not"`    // none may match any line
	// Until matches the line with the end of a limit: group "at" is the time, group "zone" a time
	// zone.
	Until string `yaml:"until"`
	// Allow and Deny match the answers of a dialog: group "key" is the key for that answer.
	Allow string `yaml:"allow"`
	Deny  string `yaml:"deny"`

	match, not         []*regexp.Regexp
	until, allow, deny *regexp.Regexp
	versions           []bound
}

// Seen is what a screen shows.
type Seen struct {
	Rule     string
	Activity team.Activity // unknown if no rule matches, or by a rule
	For      team.WaitFor
	Until    time.Time
	Since    time.Time // of a limit: when the screen first showed it, if known
	Ready    bool
	Lines    []string // the matching lines
	Input    string   // text in the input box, without what it shows when empty
	HasInput bool     // there is an input box
	Home     bool     // no conversation is shown, whatever the agent does
	// For a dialog that keys can answer: the keys and all its lines. Dialog is its text for
	// comparison, "" if only one answer has a key.
	Allow, Deny string
	Region      []string
	Dialog      string
}

type bound struct {
	op string
	v  Version
}

// BuiltinRules returns the patterns that come with teamctl; ok is false if the agent has none.
func BuiltinRules(agent string) (r *Rules, ok bool, err error) {
	b, err := ruleFiles.ReadFile("rules/" + agent + ".yaml")
	if err != nil {
		return nil, false, nil // there is no embedded file
	}
	r, err = ParseRules("rules/"+agent+".yaml", b)
	return r, err == nil, err
}

// ParseRules parses a file of screen patterns. Errors are CodeInvalid (bad_rules) with line and
// column.
func ParseRules(name string, data []byte) (*Rules, error) {
	r := &Rules{}
	if err := yaml.UnmarshalWithOptions(data, r, yaml.Strict()); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "read %s: %s", name, yamlError(err)).WithReason(team.ReasonBadRules)
	}
	if err := r.compile(); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "read %s: %w", name, err).WithReason(team.ReasonBadRules)
	}
	return r, nil
}

// yamlError returns "[line:column] message", without the excerpt of the file.
func yamlError(err error) string {
	line, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
	return line
}

func (r *Rules) compile() error {
	var errs []error
	one := func(what, pattern string) *regexp.Regexp {
		if pattern == "" {
			return nil
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
		return re
	}
	many := func(what string, patterns []string) (out []*regexp.Regexp) {
		for _, p := range patterns {
			out = append(out, one(what, p))
		}
		return out
	}
	r.turn, r.input, r.below, r.above = one("turn", r.Turn), one("input", r.Input), one("below", r.Below), one("above", r.Above)
	r.inside, r.frame = one("inside", r.Inside), one("frame", r.Frame)
	if r.Frame != "" && (r.Turn == "" || r.Input == "") {
		errs = append(errs, errors.New("frame: turn and input must match the lines that it ends"))
	}
	r.empty, r.home = many("empty", r.Empty), many("home", r.Home)
	for i := range r.Titles {
		t := &r.Titles[i]
		t.re = one("title", t.Match)
		if a := team.Activity(t.State); t.re == nil || a != team.Working && a != team.Idle {
			errs = append(errs, fmt.Errorf("title %d: match, and state working or idle", i+1))
		}
	}
	for i := range r.List {
		l := &r.List[i]
		what := fmt.Sprintf("rule %d (%s)", i+1, l.ID)
		if l.ID == "" || len(l.Match) == 0 {
			errs = append(errs, fmt.Errorf("%s: a rule has an id and at least one pattern to match", what))
		}
		switch team.Activity(l.State) {
		case team.Working, team.Idle, team.Limited, team.ActivityUnknown:
			if l.For != "" {
				errs = append(errs, fmt.Errorf("%s: only waiting is for something", what))
			}
		case team.Waiting:
			switch team.WaitFor(l.For) {
			case team.WaitPermission, team.WaitPlan, team.WaitQuestion, team.WaitTrust, team.WaitLogin:
			default:
				errs = append(errs, fmt.Errorf("%s: waiting is for permission, plan, question, trust or login, not %q", what, l.For))
			}
		default:
			errs = append(errs, fmt.Errorf("%s: a state is working, idle, waiting, limited or unknown, not %q", what, l.State))
		}
		l.match, l.not, l.until = many(what, l.Match), many(what, l.Not), one(what, l.Until)
		l.allow, l.deny = one(what, l.Allow), one(what, l.Deny)
		for _, re := range []*regexp.Regexp{l.allow, l.deny} {
			if re != nil && (re.SubexpIndex("key") < 0 || team.WaitFor(l.For) != team.WaitPermission) {
				errs = append(errs, fmt.Errorf("%s: allow and deny have a group key, and a rule for permission", what))
			}
		}
		var err error
		if l.versions, err = parseRange(l.Versions); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	return errors.Join(errs...)
}

// parseRange parses ">=1.2.3 <2.0.0".
func parseRange(s string) (out []bound, err error) {
	for _, f := range strings.Fields(s) {
		i := strings.IndexAny(f, "0123456789")
		if i < 0 {
			return nil, fmt.Errorf("version range %q", s)
		}
		v, ok := ParseVersion(f[i:])
		if !ok || !slices.Contains([]string{">=", "<"}, f[:i]) {
			return nil, fmt.Errorf("version range %q: use >=x.y.z and <x.y.z", s)
		}
		out = append(out, bound{f[:i], v})
	}
	return out, nil
}

// holds reports whether v is in the range: an unknown version is in every range, since a matching
// screen is evidence by itself.
func holds(bounds []bound, v Version) bool {
	for _, b := range bounds {
		if v.Known() && (b.op == ">=" && v.Less(b.v) || b.op == "<" && !v.Less(b.v)) {
			return false
		}
	}
	return true
}

// Look interprets a screen. now is for limits that name a time of day: when the screen first
// showed it.
func (r *Rules) Look(screen string, v Version, now time.Time) Seen {
	return r.look(screen, v, now, false)
}

// LookPast is Look without the rules for limits: what the screen shows apart from the text of a
// limit that is over.
func (r *Rules) LookPast(screen string, v Version, now time.Time) Seen {
	return r.look(screen, v, now, true)
}

func (r *Rules) look(screen string, v Version, now time.Time, past bool) Seen {
	lines := trimBottom(strings.Split(strings.ReplaceAll(screen, "\r\n", "\n"), "\n"))
	seen := r.judge(lines, v, now, past)
	if low := r.lowered(lines); seen.Rule == "" && len(low) < len(lines) {
		seen = r.judge(low, v, now, past)
	}
	seen.Input, seen.HasInput = r.inputOf(lines)
	seen.Home = r.isHome(lines)
	return seen
}

// judge returns what the first matching rule says about lines.
func (r *Rules) judge(lines []string, v Version, now time.Time, past bool) Seen {
	seen := Seen{Activity: team.ActivityUnknown}
	turn, busy := r.newestTurn(lines)
	for i := range r.List {
		l := &r.List[i]
		region := turn
		if team.Activity(l.State) == team.Working {
			region = busy
		}
		if l.Bottom > 0 {
			region = region[max(0, len(region)-l.Bottom):]
		}
		if past && team.Activity(l.State) == team.Limited || !holds(l.versions, v) {
			continue
		}
		matched, ok := l.matches(region)
		if !ok {
			continue
		}
		seen.Rule, seen.Activity, seen.For, seen.Ready, seen.Lines = l.ID, team.Activity(l.State), team.WaitFor(l.For), l.Ready, matched
		seen.Allow, seen.Deny = keyOf(l.allow, region), keyOf(l.deny, region)
		if seen.Allow != "" || seen.Deny != "" {
			seen.Region = region
		}
		if seen.Allow != "" && seen.Deny != "" {
			seen.Dialog = l.dialog(region)
		}
		if l.until != nil {
			seen.endOf(l, region, now)
		}
		return seen
	}
	return seen
}

func (r *Rules) isHome(lines []string) bool {
	for _, re := range r.home {
		if !slices.ContainsFunc(lines, re.MatchString) {
			return false
		}
	}
	return len(r.home) > 0
}

// endOf sets the end of a limit, whose text may be wrapped over two lines, and the words that name
// it.
func (s *Seen) endOf(l *Rule, region []string, now time.Time) {
	var words []string
	for _, line := range region {
		words = append(words, strings.Fields(line)...)
	}
	all := l.until.FindAllStringSubmatch(strings.Join(words, " "), -1)
	if len(all) == 0 {
		return
	}
	m := all[len(all)-1]
	zone := ""
	if i := l.until.SubexpIndex("zone"); i >= 0 {
		zone = m[i]
	}
	s.Until = parseUntil(m[max(0, l.until.SubexpIndex("at"))], zone, now)
	if !strings.Contains(s.Lines[0], m[0]) {
		s.Lines = append(s.Lines, m[0])
	}
}

// newestTurn returns the lines from the beginning of the newest turn on, or all lines if none
// begins there. A message that was typed ahead looks like the beginning of a turn and may be below
// the line that shows the agent working. For rules about that, busy reaches back to the previous
// turn if the newest turn is empty.
func (r *Rules) newestTurn(lines []string) (turn, busy []string) {
	if r.turn == nil {
		return lines, lines
	}
	if r.frame != nil {
		turn = r.newestBlock(lines)
		return turn, turn
	}
	box := r.inputLine(lines)
	if box >= 0 && r.above != nil && !slices.ContainsFunc(lines[max(0, box-3):box], r.above.MatchString) {
		box = -1
	}
	before := 0 // beginning of the previous turn
	begins := -1
	for i := len(lines) - 1; i >= 0; i-- {
		if i == box || !r.turn.MatchString(lines[i]) {
			continue
		}
		if begins >= 0 {
			before = i
			break
		}
		begins = i
	}
	if begins < 0 {
		return lines, lines
	}
	turn = lines[begins:]
	if box <= begins || slices.ContainsFunc(lines[begins+1:box], func(l string) bool { return !strings.HasPrefix(l, "  ") && inkOf(l) != "" }) {
		return turn, turn
	}
	return turn, lines[before:]
}

// keyOf returns the key named by the last matching line; "" for none.
func keyOf(re *regexp.Regexp, region []string) (key string) {
	if re == nil {
		return ""
	}
	for _, line := range region {
		if m := re.FindStringSubmatch(line); m != nil {
			key = m[re.SubexpIndex("key")]
		}
	}
	return key
}

// Shows reports whether a dialog shows a text, however it is wrapped and framed.
func (s Seen) Shows(text string) bool {
	want := inkOf(text)
	return want != "" && strings.Contains(inkOf(strings.Join(s.Region, "")), want)
}

// inkOf returns a text without blanks and drawn lines.
func inkOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '|' || r >= 0x2500 && r <= 0x259f {
			return -1
		}
		return r
	}, s)
}

func (l *Rule) matches(region []string) (matched []string, ok bool) {
	for _, re := range l.not {
		if slices.ContainsFunc(region, re.MatchString) {
			return nil, false
		}
	}
	for _, re := range l.match {
		i := slices.IndexFunc(region, re.MatchString)
		if i < 0 {
			return nil, false
		}
		matched = append(matched, strings.TrimSpace(region[i]))
	}
	return matched, true
}

// inputWithin is the maximum distance of an input box's first line from the bottom: Gemini CLI's
// box shows ten lines of a long text, with three more lines below it.
const inputWithin = 16

// underInput is the number of lines kept under a high input box that is lowered.
const underInput = 3

// lowered returns a screen whose input box is reduced to one line of text: rules count lines from
// the bottom.
func (r *Rules) lowered(lines []string) []string {
	box := r.highInput(lines)
	if box < 0 || len(lines)-box-1 <= underInput {
		return lines
	}
	return slices.Concat(lines[:box+1], lines[len(lines)-underInput:])
}

// inputLine returns the lowest line that looks like an input box; -1 for none.
func (r *Rules) inputLine(lines []string) int {
	if r.input == nil {
		return -1
	}
	if i := r.highInput(lines); i >= 0 {
		return i
	}
	for i := len(lines) - 1; i >= max(0, len(lines)-inputWithin); i-- {
		if r.input.MatchString(lines[i]) {
			return i
		}
	}
	return -1
}

// highInput returns the first line of an input box of any height: all lines under it match Inside.
func (r *Rules) highInput(lines []string) int {
	if r.inside == nil || r.input == nil {
		return -1
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if r.input.MatchString(lines[i]) {
			return i
		}
		if !r.inside.MatchString(lines[i]) {
			break
		}
	}
	return -1
}

func (r *Rules) inputOf(lines []string) (text string, ok bool) {
	if r.frame != nil {
		return r.framedInput(lines)
	}
	i := r.inputLine(lines)
	if i < 0 {
		return "", false
	}
	m := r.input.FindStringSubmatch(lines[i])
	if j := r.input.SubexpIndex("text"); j >= 0 {
		text = strings.TrimSpace(m[j])
	}
	if r.below != nil && i+1 < len(lines) && !r.below.MatchString(lines[i+1]) {
		return strings.TrimSpace(text + "\n" + strings.TrimSpace(lines[i+1])), true
	}
	return r.emptied(text), true
}

// emptied returns the text of an input box without what it shows when empty.
func (r *Rules) emptied(text string) string {
	for _, re := range r.empty {
		if re.MatchString(text) {
			return ""
		}
	}
	return text
}

func trimBottom(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
