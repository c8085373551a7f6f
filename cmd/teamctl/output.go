package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// output owns all text for people and programs. Results go to stdout, everything else to stderr;
// with --json stdout has nothing but JSON, including errors.
type output struct {
	stdout io.Writer
	stderr io.Writer
	json   bool      // json or jsonl
	format format    // of the result
	shape  shape     // what the command writes
	style  tui.Style // of stdout
	file   string    // given by -o, where the command takes one
	warn   tui.Style // of stderr
	screen *os.File  // stdout if it is a terminal, else nil

	warnScreen bool // stderr is a terminal

	mu     sync.Mutex
	failed error // the first failed write to stdout
}

func newOutput(stdout, stderr *os.File, jsonOut bool) *output {
	o := &output{stdout: stdout, stderr: stderr, json: jsonOut}
	if term.IsTerminal(int(stdout.Fd())) {
		o.screen = stdout
		o.style = tui.NewStyle(colorful())
	}
	o.warnScreen = term.IsTerminal(int(stderr.Fd()))
	o.warn = tui.NewStyle(colorful() && o.warnScreen)
	return o
}

// colorful reports whether the environment allows colours (no-color.org), and the terminal has them.
func colorful() bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	name := os.Getenv("TERM")
	return name != "dumb" && !decTerminal() && !strings.HasSuffix(name, "-m") && !strings.HasSuffix(name, "-mono")
}

// decTerminal reports whether the terminal is one of DEC's, which have neither colours nor UTF-8.
func decTerminal() bool {
	kind, _, _ := strings.Cut(os.Getenv("TERM"), "-")
	return slices.Contains([]string{"vt52", "vt100", "vt102", "vt220", "vt320", "vt420"}, kind)
}

// size returns the size of the terminal, or 80x24.
func (o *output) size() (cols, rows int) {
	if o.screen != nil {
		if c, r, err := term.GetSize(int(o.screen.Fd())); err == nil && c > 0 && r > 0 {
			return c, r
		}
	}
	return 80, 24
}

// text writes s unchanged.
func (o *output) text(s string) {
	if _, err := io.WriteString(o.stdout, s); err != nil {
		o.fail(team.Errorf(team.CodeUnavailable, "write the result: %w", err))
	}
}

// fail keeps the first failure. A conversation and its input write at the same time.
func (o *output) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
}

// failure returns the first failure, or nil.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// line writes one line of the result, for people. It escapes all control sequences and invisible
// characters except the colours of o.style.
func (o *output) line(format string, args ...any) {
	if o.json {
		return
	}
	o.text(o.style.Show(fmt.Sprintf(format, args...)) + "\n")
}

// note writes a remark beside the result to stderr.
func (o *output) note(format string, args ...any) {
	o.say("teamctl: ", format, args...)
}

func (o *output) say(prefix, format string, args ...any) {
	// There is no way to report that stderr does not work.
	_, _ = io.WriteString(o.stderr, o.warn.Show(prefix+fmt.Sprintf(format, args...))+"\n")
}

// hint names the next command, on stderr, for people only.
func (o *output) hint(format string, args ...any) {
	if !o.json {
		o.say("teamctl: hint: ", format, args...)
	}
}

// encode writes one JSON value and a line break. It does not escape <, > and &: they are common in
// commands, and the output is not HTML.
func (o *output) encode(v any, indent string) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		o.fail(team.Errorf(team.CodeInternal, "write the result as JSON: %w", err))
		return
	}
	o.text(b.String())
}

// table writes rows below a head, with aligned columns and each cell escaped, on one line. On a
// terminal, lines are cut to its width unless wide is set.
func (o *output) table(head []string, rows [][]string, wide bool) {
	wide = wide || o.wide()
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(o.style.Show(cell), "\n", `\n`)
		}
	}
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], view.Width(cell))
		}
	}
	cols, _ := o.size()
	put := func(row []string, paint func(string) string) {
		var b strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = view.Pad(cell, widths[i]) + "  "
			}
			b.WriteString(cell)
		}
		s := strings.TrimRight(b.String(), " ")
		if o.screen != nil && !wide {
			s = view.Cut(s, cols)
		}
		o.text(paint(s) + "\n")
	}
	put(head, func(s string) string { return o.style.Show(o.style.Dim(s)) })
	for _, row := range rows {
		put(row, func(s string) string { return s })
	}
}

// errorJSON is an error in the format of --json.
type errorJSON struct {
	Code    team.Code `json:"code"`
	Message string    `json:"message"`
	Reason  string    `json:"reason,omitempty"`
	Hint    string    `json:"hint,omitempty"`
}

func errorBody(err error) errorJSON {
	return errorJSON{team.CodeOf(err), err.Error(), team.ReasonOf(err), team.HintOf(err)}
}

// error reports why the command failed, then which command helps.
func (o *output) error(err error) {
	if o.json {
		indent := "  "
		if o.format == formatJSONL {
			indent = ""
		}
		o.encode(map[string]errorJSON{"error": errorBody(err)}, indent)
		return
	}
	for _, l := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
		o.say("teamctl: ", "%s %s", o.warn.Red("error:"), printable(l))
	}
	if h := team.HintOf(err); h != "" {
		o.hint("%s", printable(h))
	}
}

// interrupted reports that a signal ended the command.
func (o *output) interrupted() {
	if !o.json {
		o.note("interrupted")
	}
}

// printable escapes everything in a line of foreign text that a terminal would interpret or hide.
func printable(s string) string { return plain.Visible(strings.TrimSuffix(s, "\r")) }

// dash replaces an empty cell by "-".
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// errSaid ends a command whose result on stdout already reports the failure.
var errSaid = team.Errorf(team.CodeUnavailable, "reported in the result")
