package tui

import (
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// leastScreen is the minimum number of lines in which the only member is shown below something else.
const leastScreen = 6

// sole returns the row of the only member of the team, where it has no list but a line of its own above the
// tasks: on a large screen of the team.
func (m *model) sole() (item, bool) {
	if m.at != inTeam || !m.wide() || m.filter != "" || len(m.sections) < 3 || len(m.ranked()) != 1 || len(m.sections[1].items) != 1 {
		return item{}, false
	}
	it := m.sections[1].items[0]
	return it, !it.gone && it.on.Member != nil
}

// soleLine draws that row.
func (m *model) soleLine(f *frame, it item) {
	const label = "member  " // it stands below the needs
	mark, line := "  ", it.line(m.cols-3-len(label))
	if it.id == m.cursor {
		mark, line = m.style.Bold("›")+" ", m.style.boldText(line)
	}
	f.regions = append(f.regions, region{y: len(f.lines), left: 0, right: m.cols, id: it.id})
	f.add(" " + mark + m.style.Dim(label) + line)
}

// withSole adds to the details of the selected row what is known of the only member, if there is room.
func (m *model) withSole(lines []string, width, height int) []string {
	it, ok := m.sole()
	sel, selected := m.row()
	room := height - len(lines) - 1
	if !ok || room < leastScreen || selected && sel.on.Thing == view.OnMember {
		return lines
	}
	lines = append(lines[:len(lines):len(lines)], m.style.Dim(strings.Repeat("─", width)))
	return append(lines, m.memberLines(*it.on.Member, nil, width, room)...)
}
