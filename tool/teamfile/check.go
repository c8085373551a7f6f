package teamfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"

	"github.com/teamctl/teamctl/team"
)

const maxCount = 100

func (r *reader) checkMembers(ms []placed[Member]) {
	taken := map[string]int{} // name -> line
	for _, p := range ms {
		m := p.v
		if m.Name == "" {
			if p.keys["name"] == nil {
				r.at(p.at, "a member has no name")
			} else if r.clean(p.where("name")) {
				r.at(p.where("name"), "name is empty")
			}
			continue
		}
		key, err := team.AgentKey(m.Name)
		if err != nil {
			r.at(p.where("name"), "%v", err)
			continue
		}
		if p.keys["count"] != nil && (m.Count < 1 || m.Count > maxCount) && r.clean(p.where("count")) {
			r.at(p.where("count"), "count must be between 1 and %d", maxCount)
		}
		for i := range max(1, min(m.Count, maxCount)) {
			name := numbered(key, i)
			if line, dup := taken[name]; dup {
				r.at(p.where("name"), "a member named %q is given twice (first in line %d)", name, line)
				break
			}
			taken[name] = p.at.Line
		}
		r.checkMember(p)
	}
}

// numbered returns the name of the i-th member of an entry with a count.
func numbered(key string, i int) string {
	if i == 0 {
		return key
	}
	return fmt.Sprintf("%s-%d", key, i+1)
}

func (r *reader) checkMember(p placed[Member]) {
	m := p.v
	check := func(key string, err error) {
		if err == nil || p.keys[key] == nil || !r.clean(p.where(key)) {
			return
		}
		if hint := team.HintOf(err); hint != "" {
			r.at(p.where(key), "%v: %s", err, hint)
			return
		}
		r.at(p.where(key), "%v", err)
	}
	_, err := team.ParseRole(string(m.Role))
	check("role", err)
	_, err = team.ParseRestartPolicy(string(m.Restart))
	check("restart", err)
	_, err = team.ParseMode(string(m.Mode))
	check("mode", err)
	_, err = team.ParseServers(string(m.MCP))
	check("mcp", err)
	if !m.Exact {
		check("exact", fmt.Errorf("a team file's members always have their exact names: omit exact"))
	}
	own := m.WorktreeMode == "" || m.WorktreeMode == "own"
	switch {
	case m.Base != "" && m.Branch != "":
		check("base", fmt.Errorf("a base is for a new branch, not for an existing one: leave out base or branch"))
	case m.Base != "" && !own:
		check("base", fmt.Errorf("a base needs a worktree of the member's own"))
	case m.Fresh && !own:
		check("fresh", fmt.Errorf("fresh needs a worktree of the member's own"))
	}
	switch {
	case m.Branch != "" && m.Count > 1:
		check("branch", fmt.Errorf("%d members cannot work on one branch", m.Count))
	case m.Branch != "" && !own:
		check("branch", fmt.Errorf("a branch needs a worktree of the member's own"))
	case p.keys["branch"] != nil && m.Branch == "":
		check("branch", fmt.Errorf("branch is empty"))
	}
	switch {
	case team.KindOf(m.Agent).Command && len(m.Command) == 0:
		check("agent", fmt.Errorf("agent command needs a command"))
	case len(m.Command) > 0 && team.KindOf(m.Agent).Worker:
		check("agent", fmt.Errorf("agent %s takes no command: leave out agent or command", m.Agent))
	case p.keys["command"] != nil && (len(m.Command) == 0 || m.Command[0] == ""):
		check("command", fmt.Errorf("command is empty"))
	}
}

// clean reports whether there is no problem at this position yet: one is enough.
func (r *reader) clean(at *token.Position) bool {
	return at == nil || !slices.ContainsFunc(r.problems, func(p Problem) bool {
		return p.Line == at.Line && p.Column == at.Column
	})
}

// checkTasks checks each task and the graph. With board, the ledger checks a dependency that is a
// number and not an id of the list.
func (r *reader) checkTasks(ts []placed[Task], board bool) {
	ids := map[string]int{} // id -> index
	var names []string
	for i, p := range ts {
		t := p.v
		r.checkTask(p)
		if t.ID == "" {
			continue
		}
		if j, twice := ids[t.ID]; twice {
			r.at(p.where("id"), "id %q is given twice (first in line %d)", t.ID, ts[j].at.Line)
			continue
		}
		ids[t.ID] = i
		names = append(names, t.ID)
	}
	edges := make([][]int, len(ts))
	for i, p := range ts {
		for k, d := range p.v.DependsOn {
			switch j, ok := ids[d]; {
			case ok && j == i:
				r.at(p.deps[k], "task %q depends on itself", d)
			case ok:
				edges[i] = append(edges[i], j)
			case board && isNumber(d):
			default:
				r.unknownTask(p.deps[k], d, names)
			}
		}
	}
	if cycle := findCycle(edges); cycle != nil {
		words := make([]string, 0, len(cycle)+1)
		for _, i := range append(cycle, cycle[0]) {
			words = append(words, ts[i].v.ID)
		}
		p := ts[cycle[0]]
		r.at(p.where("dependsOn"), "the dependencies form a cycle: %s", strings.Join(words, " -> "))
	}
}

func (r *reader) unknownTask(at *token.Position, id string, names []string) {
	if c := team.Closest(id, names); c != "" {
		r.at(at, "dependsOn names no task: %q (did you mean %s?)", id, c)
		return
	}
	r.at(at, "dependsOn names no task: %q", id)
}

func (r *reader) checkTask(p placed[Task]) {
	t := p.v
	long := func(key, s string, limit int) {
		if n := utf8.RuneCountInString(s); n > limit {
			r.at(p.where(key), "%s is %d characters long, at most %d are allowed", key, n, limit)
		}
	}
	switch {
	case p.keys["subject"] == nil:
		r.at(p.at, "a task has no subject")
	case strings.TrimSpace(t.Subject) == "" && r.clean(p.where("subject")):
		r.at(p.where("subject"), "subject is empty")
	}
	long("subject", t.Subject, team.MaxSubject)
	long("description", t.Description, team.MaxDescription)
	if _, both := t.Metadata["run"]; both && t.Run != "" {
		r.at(p.where("metadata"), "run stands in the task and in its metadata: leave one out")
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// findCycle returns the nodes of one cycle in order, nil if there is none.
func findCycle(edges [][]int) []int {
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(edges))
	var path []int
	var visit func(int) []int
	visit = func(i int) []int {
		switch state[i] {
		case open:
			return path[slices.Index(path, i):]
		case done:
			return nil
		}
		state[i] = open
		path = append(path, i)
		for _, j := range edges[i] {
			if c := visit(j); c != nil {
				return slices.Clone(c)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
		return nil
	}
	for i := range edges {
		if c := visit(i); c != nil {
			return c
		}
	}
	return nil
}
