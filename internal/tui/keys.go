package tui

import (
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// command is a key's effect other than an action on the team.
type command struct {
	id, title string
	keys      []string
}

// commands lists the keys of the screen.
func commands() []command {
	return []command{
		{"next-need", "go to the next need", []string{"."}},
		{"previous-need", "go to the previous need", []string{","}},
		{"put-off", "put off what needs you, or take it up again", []string{"Z"}},
		{"open", "go in: the request, the screen, the changes, the text", []string{"enter"}},
		{"back", "go back", []string{"esc"}},
		{"menu", "what can be done with the row", []string{"o"}},
		{"palette", "everything that can be done", []string{":"}},
		{"filter", "show the rows with these words only", []string{"/"}},
		{"help", "the keys of this place", []string{"?"}},
		{"screen", "the member's screen", []string{"s", "z"}},
		{"changes", "what the member has changed", []string{"d"}},
		{"log", "the log of the task's last attempt", []string{"L"}},
		{"turn", "another drawing of the tasks; in changes: mark lines, from here to where you go; in time: another kind of log", []string{"v"}},
		{"sides", "in changes: the two sides beside each other, or in one column", []string{"w"}},
		{"across", "in changes: the file as all members change it, and back", []string{"O"}},
		{"pager", "in changes: those of the file through the pager of ui.yaml, and back", []string{"|"}},
		{"base", "compare changes with another state", []string{"b"}},
		{"next-change", "the next change; in a text: the next line with the words of the search", []string{"n"}},
		{"previous-change", "the change before; in a text: the line before with the words of the search", []string{"N"}},
		{"next-file", "the next file", []string{"J"}},
		{"previous-file", "the file before", []string{"K"}},
		{"copy", "copy the row", []string{"y"}},
		{"down", "a row down", []string{"j", "down"}},
		{"up", "a row up", []string{"k", "up"}},
		{"top", "the first row", []string{"g", "home"}},
		{"bottom", "the last row; in a member's screen: back to what it shows now", []string{"G", "end"}},
		{"scroll-down", "half a screen down", []string{"ctrl-d", "pgdn"}},
		{"scroll-up", "half a screen up; in a member's screen: back in what its terminal keeps", []string{"ctrl-u", "pgup"}},
		{"next-list", "the next list", []string{"tab", "l", "right"}},
		{"previous-list", "the list before", []string{"backtab", "h", "left"}},
		{"view-team", "members and tasks", []string{"1"}},
		{"view-tasks", "tasks", []string{"2"}},
		{"view-needs", "what waits for you", []string{"3"}},
		{"view-mail", "mail", []string{"4"}},
		{"view-changes", "changes and merges", []string{"5"}},
		{"view-usage", "tokens and cost", []string{"6"}},
		{"view-time", "what members did when, and the log", []string{"7"}},
		{"zoom-in", "in time: less of it, in more columns", []string{"+", "="}},
		{"zoom-out", "in time: more of it", []string{"-"}},
		{"follow", "in time: follow what happens, or stay", []string{"f"}},
		{"noise", "in the log: protocol, too, or no longer", []string{"p"}},
		{"redraw", "draw the screen anew", []string{"ctrl-l"}},
		{"suspend", "suspend", []string{"ctrl-z"}},
		{"quit", "leave", []string{"q"}},
	}
}

// choices returns the actions on the selected row and, for the palette and the help, the commands
// of the screen.
func (m *model) choices(all bool) []choice {
	var out []choice
	t := m.target()
	for _, a := range m.actions() {
		out = append(out, choice{title: a.Title, key: a.Key, line: a.Line(t.Deed(a)), action: a})
	}
	if !all {
		return out
	}
	for _, c := range commands() {
		keys := m.keys[c.id]
		if c.id == "quit" {
			keys = append(keys[:len(keys):len(keys)], leaveKey)
		}
		in := onlyIn()[c.id]
		out = append(out, choice{title: c.title, key: strings.Join(keys, " "), command: c.id, away: in != nil && !slices.Contains(in, m.at)})
	}
	out = append(out, m.awayActions(out)...)
	slices.SortStableFunc(out, func(a, b choice) int { return b2i(a.away) - b2i(b.away) })
	return out
}

// hasAction reports whether a key has an action on any row.
func (m *model) hasAction(key string) bool {
	return slices.ContainsFunc(view.Actions(), func(a view.Action) bool { return slices.Contains(m.keys[a.ID], key) })
}

// noAction says why the list of teams has no actions.
func (m *model) noAction() string {
	text := "nothing was done: no team is open"
	if key := m.keys.hint("open", "opens the selected team"); key != "" && len(m.teams) > 0 {
		text += ", " + key
	}
	return text
}

// actionOf returns the action of a key on the selected row. Irreversible actions have no key.
func (m *model) actionOf(key string) (view.Action, bool) {
	for _, a := range m.actions() {
		if slices.Contains(m.keys[a.ID], key) {
			return a, true
		}
	}
	return view.Action{}, false
}
