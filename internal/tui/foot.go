package tui

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
)

// foot returns the last line: the keys of this place, of which the key of the help is never left out.
// On a screen of few rows it is what was said, until the next key. more is as in frame.
func (m *model) foot(more bool) string {
	last := m.helpKey()
	if said := m.said(); said != "" && m.rows < saidFrom && (m.toast != "" || !m.receiptOld) {
		if last != "" && view.Width(said)+2+view.Width(last) <= m.cols {
			said += "  " + m.style.Dim(last)
		}
		return said
	}
	return m.style.Dim(m.footLine(more, func(int, int, string) {}))
}

// footLine returns the keys that fit, the one of the help last, and calls each with the cells of
// each.
func (m *model) footLine(more bool, each func(left, right int, hint string)) string {
	room, last := m.cols, m.helpKey()
	if last != "" {
		room -= view.Width(last) + 2
	}
	line := ""
	put := func(k string, room int) {
		longer := line + " " + k
		if line != "" {
			longer = line + "  " + k
		}
		if k == "" || view.Width(longer) > room { // it has no key, or no room
			return
		}
		line = longer
		each(view.Width(line)-view.Width(k), view.Width(line), k)
	}
	for _, k := range m.footKeys(more) {
		put(k, room)
	}
	put(last, m.cols)
	return line
}

// helpKey names the key of the help, "" where it is another's.
func (m *model) helpKey() string {
	if m.over.kind != noOverlay {
		return ""
	}
	return m.keys.hint("help", "help")
}

// keyRegion begins the id of a region that is a key.
const keyRegion = "key:"

// footRegions are the keys of the last line, for the mouse.
func (m *model) footRegions(foot string, more bool) (out []region) {
	line := m.footLine(more, func(left, right int, hint string) {
		key, _, _ := strings.Cut(hint, " ")
		if checkKey(key) == "" {
			out = append(out, region{y: m.rows - 1, left: left, right: right, id: keyRegion + key})
		}
	})
	if line != foot { // it has a result
		return nil
	}
	return out
}

// shortly has titles of actions that are too long for the last line.
func shortly() map[string]string {
	return map[string]string{"comment-file": "comment file", "edit-comment": "edit", "send-review": "send", "review-task": "as a task", "merge-ready": "merge"}
}

// actionKeys returns the keys of the actions on the selected row: those with the ids first, then the
// others.
func (m *model) actionKeys(first ...string) (keys []string) {
	it, _ := m.row()
	if it.gone {
		return nil
	}
	hints, order, short := map[string]string{}, []string{}, shortly()
	for _, a := range m.actions() {
		if a.Key != "" && a.ID != "add-task" && (a.ID != "merge-ready" || m.at == inChanges) {
			title := a.Title
			if s := short[a.ID]; s != "" {
				title = s
			}
			hints[a.ID] = a.Key + " " + title
			order = append(order, a.ID)
		}
	}
	for _, id := range append(first, order...) {
		keys = append(keys, hints[id])
		hints[id] = ""
	}
	return keys
}

// footKeys returns the most relevant keys, most important first, without that of the help.
func (m *model) footKeys(more bool) []string {
	if m.over.kind != noOverlay {
		return m.overKeys(more)
	}
	k := m.keys
	var keys []string
	put := func(list ...string) { keys = append(keys, list...) }
	if m.filter != "" {
		put("/" + view.Clean(m.filter) + m.searched())
	}
	switch m.at {
	case inScreen:
		put(m.screenKeys()...)
	case inLog:
		put(m.logKeys()...)
	case inPager:
		put(m.pagerKeys()...)
	case inTime:
		put(m.timeKeys()...)
	default:
	}
	it, _ := m.row()
	need := it.on.Need
	switch {
	case it.on.Thing == view.OnTask && it.on.Task != nil && !it.gone && m.at != inLog:
		put(m.logKey(it))
	case strings.HasPrefix(it.id, "members:"):
		put("enter " + map[bool]string{false: "open", true: "close"}[m.opened[it.id]])
	case m.readOnly:
	case strings.HasPrefix(it.id, commandRow):
		put(k.hint("open", "run"))
	case need != nil && need.Kind == view.NeedDialog:
		put(k.hint("open", "attach"))
	}
	later := []string{} // after the way to other lists and views
	switch {
	case m.at == inChanges:
		put(m.changeKeys()...)
	case it.gone || it.on.Member == nil || it.on.Member.Lead || it.on.Thing == view.OnMessage || it.on.Thing == view.OnMerge:
		put(m.actionKeys()...)
	case it.on.Thing == view.OnMember:
		put(m.actionKeys("message")[:1]...)
		put(k.hint("changes", "diff"))
		if m.at != inScreen {
			put(k.hint("screen", "screen"))
		}
		put(k.hint("menu", "more"))
		put(m.actionKeys("message")[1:]...)
	default:
		put(m.actionKeys()...)
		if need != nil && need.Kind == view.NeedPlan && need.Approval != 0 && !m.readOnly {
			put(k.hint("open", "comment on it"))
		}
		later = append(later, k.hint("menu", "more"), k.hint("changes", "diff"), k.hint("screen", "screen"))
	}
	if m.at == inTasks {
		put(k.hint("turn", nextOf(m.tasksAs)))
	}
	if m.at != inTeams {
		if m.at != inTeam || m.wide() { // else the list names them
			put(m.viewKeys())
		}
		if m.at == inTeam && m.wide() {
			put(k.hint("next-list", "next list"))
		}
	}
	if _, n := m.needs(); n > 0 {
		put(k.hint("next-need", "next need"))
	}
	put(later...)
	return append(keys, k.hint("palette", "all"), k.hint("quit", "quit"))
}

// viewKeys names the keys of the views.
func (m *model) viewKeys() string {
	for i, p := range digits {
		if m.keys.first("view-"+string(p)) != strconv.Itoa(i+1) {
			return m.keys.hint("view-tasks", "tasks")
		}
	}
	if m.cols < 170 {
		return fmt.Sprintf("1-%d views", len(digits))
	}
	var all []string
	for _, p := range digits {
		all = append(all, m.keys.hint("view-"+string(p), string(p)))
	}
	return strings.Join(all, "  ")
}
