package teamfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// Read reads and checks the team file at path. A missing file is CodeNotFound; errors in it are
// one CodeInvalid error that wraps Problems.
func Read(path string) (*File, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// ReadTasks reads a list of tasks: at the top level of the file, or under the key tasks.
func ReadTasks(path string) ([]Task, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	return ParseTasks(path, data)
}

func load(path string) ([]byte, error) {
	data, err := private.ReadInput(path)
	r := (*private.Refusal)(nil)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, team.Errorf(team.CodeNotFound, "read %s: no such file", path).
			WithHint("give the path of the file with -f").WithReason(team.ReasonFileMissing)
	case errors.As(err, &r):
		hint := team.ShellLine(r.Mend)
		if hint == "" {
			hint = "read it, and if it is good use a copy of your own: cp " + team.ShellQuote(path) + " my-" + team.ShellQuote(filepath.Base(path))
		}
		return nil, team.Errorf(team.CodeDenied, "read the file: %w", err).WithReason(team.ReasonNotPrivate).WithHint(hint)
	default:
		return nil, team.Errorf(team.CodeInvalid, "read the file: %w", err).WithReason(team.ReasonFileUnreadable)
	}
}

// Parse checks the text of a team file; name appears in its errors.
func Parse(name string, data []byte) (*File, error) {
	r := newReader(name)
	root := r.parse(data)
	if root == nil {
		return nil, r.problems.coded()
	}
	var (
		f     File
		teamN ast.Node
		ms    []placed[Member]
		ts    []placed[Task]
		es    []placed[Edge]
		sets  = map[string]ast.Node{}
	)
	r.mapping(root, "a team file", []field{
		{"team", func(n ast.Node) { teamN = n; r.text("team", &f.Team)(n) }},
		{"description", r.text("description", &f.Description)},
		{"repo", r.text("repo", &f.Repo)},
		{"repos", r.repos(&f.Repos)},
		{"base", r.text("base", &f.Base)},
		{"worktrees", r.worktrees(&f.Worktrees, sets)},
		{"hooks", r.hooks(&f.Hooks)},
		{"permissions", r.permissions(&f.Permissions)},
		{"budget", r.budget(&f.Budget)},
		{"onLimit", r.onLimit(&f.OnLimit)},
		{"confine", r.boolean("confine", &f.Confine)},
		{"writable", r.texts("writable", &f.Writable)},
		{"lanes", r.lanes(&f.Lanes)},
		{"model", r.model(&f.Model)},
		{"agents", r.agents(&f.Agents)},
		{"mcp", r.servers(&f.MCP)},
		{"members", func(n ast.Node) { ms = r.members(n) }},
		{"edges", func(n ast.Node) { es = r.edges(n) }},
		{"tasks", func(n ast.Node) { ts = r.tasks(n) }},
	})
	switch {
	case teamN == nil && len(r.problems) == 0:
		r.bad(root, "key team is missing")
	case teamN != nil && f.Team != "":
		if _, err := team.TeamKey(f.Team); err != nil {
			r.bad(teamN, "%v", err)
		}
	case teamN != nil && len(r.problems) == 0:
		r.bad(teamN, "team is empty")
	}
	r.checkMembers(ms)
	r.checkEdges(es, ms)
	r.checkRepos(ms, sets, &f)
	r.checkTasks(ts, false)
	if err := r.problems.coded(); err != nil {
		return nil, err
	}
	for i := range ms {
		m := &ms[i].v
		if ms[i].keys["confine"] == nil && builtIn(*m) {
			m.Confine = f.Confine
		}
		if m.Confine {
			m.Writable = append(slices.Clone(f.Writable), m.Writable...)
		}
	}
	f.Members, f.Edges, f.Tasks = values(ms), values(es), values(ts)
	return &f, nil
}

// builtIn reports whether a member is a built-in agent with a model.
func builtIn(m Member) bool {
	return team.KindOf(m.Agent).Sessions || m.Agent == "" && len(m.Command) == 0 && strings.Contains(m.Model, "/")
}

// ParseTasks checks the text of a task list; name appears in its errors. A dependency that is a
// number and not an id of the list refers to a task on the board, so only the ledger can check it.
func ParseTasks(name string, data []byte) ([]Task, error) {
	r := newReader(name)
	root := r.parse(data)
	if root == nil {
		return nil, r.problems.coded()
	}
	var ts []placed[Task]
	if _, list := r.plain(root).(*ast.SequenceNode); list {
		ts = r.tasks(root)
	} else {
		r.mapping(root, "a task file", []field{{"tasks", func(n ast.Node) { ts = r.tasks(n) }}})
	}
	if len(ts) == 0 && len(r.problems) == 0 {
		r.whole("has no tasks")
	}
	r.checkTasks(ts, true)
	if err := r.problems.coded(); err != nil {
		return nil, err
	}
	return values(ts), nil
}

// placed is a value with the positions of its keys, for later checks.
type placed[T any] struct {
	v    T
	at   *token.Position
	keys map[string]ast.Node
	deps []*token.Position // of the entries of dependsOn
}

func (p placed[T]) where(key string) *token.Position {
	if n := p.keys[key]; n != nil {
		return position(n)
	}
	return p.at
}

func values[T any](ps []placed[T]) []T {
	var out []T
	for _, p := range ps {
		out = append(out, p.v)
	}
	return out
}

func (r *reader) members(n ast.Node) (out []placed[Member]) {
	r.sequence(n, "members", func(e ast.Node) {
		p := placed[Member]{at: position(e), keys: map[string]ast.Node{}}
		m := &p.v
		ok := r.mapping(e, "a member", p.noting([]field{
			{"name", r.text("name", &m.Name)},
			{"agent", r.text("agent", &m.Agent)},
			{"command", r.command(&m.Command)},
			{"backend", r.text("backend", &m.Backend)},
			{"count", r.integer("count", &m.Count)},
			{"prompt", r.text("prompt", &m.Prompt)},
			{"role", r.text("role", (*string)(&m.Role))},
			{"restart", r.text("restart", (*string)(&m.Restart))},
			{"env", r.env(&m.Env)},
			{"repo", r.text("repo", &m.Repo)},
			{"branch", r.text("branch", &m.Branch)},
			{"worktree", r.worktree(&m.WorktreeMode)},
			{"base", r.text("base", &m.Base)},
			{"fresh", r.boolean("fresh", &m.Fresh)},
			{"cwd", r.text("cwd", &m.Cwd)},
			{"exact", r.boolean("exact", &m.Exact)},
			{"model", r.text("model", &m.Model)},
			{"type", r.text("type", &m.AgentType)},
			{"mode", r.text("mode", (*string)(&m.Mode))},
			{"layout", r.layout(&m.Layout)},
			{"limits", r.limits(&m.Limits)},
			{"budget", r.budget(&m.Budget)},
			{"asks", r.boolean("asks", &m.Asks)},
			{"mcp", r.text("mcp", (*string)(&m.MCP))},
			{"confine", r.boolean("confine", &m.Confine)},
			{"writable", r.texts("writable", &m.Writable)},
		}))
		if ok {
			out = append(out, p)
		}
	})
	return out
}

func (r *reader) tasks(n ast.Node) (out []placed[Task]) {
	r.sequence(n, "tasks", func(e ast.Node) {
		p := placed[Task]{at: position(e), keys: map[string]ast.Node{}}
		t := &p.v
		ok := r.mapping(e, "a task", p.noting([]field{
			{"id", r.scalar("id", &t.ID)},
			{"subject", r.text("subject", &t.Subject)},
			{"description", r.text("description", &t.Description)},
			{"run", r.text("run", &t.Run)},
			{"dependsOn", func(n ast.Node) {
				r.sequence(n, "dependsOn", func(d ast.Node) {
					var id string
					r.scalar("a dependency", &id)(d)
					if id != "" {
						t.DependsOn = append(t.DependsOn, id)
						p.deps = append(p.deps, position(d))
					}
				})
			}},
			{"verify", r.text("verify", &t.Verify)},
			{"priority", r.integer("priority", &t.Priority)},
			{"metadata", func(n ast.Node) { t.Metadata = r.object(n, "metadata", 0) }},
		}))
		if ok {
			out = append(out, p)
		}
	})
	return out
}

// noting makes the fields record their positions.
func (p *placed[T]) noting(fields []field) []field {
	for i, f := range fields {
		fields[i].read = func(n ast.Node) {
			p.keys[f.key] = n
			f.read(n)
		}
	}
	return fields
}

// layout reads the position of a member's pane in tmux.
func (r *reader) layout(into *team.PaneLayout) func(ast.Node) {
	return func(n ast.Node) {
		var text string
		r.text("layout", &text)(n)
		switch {
		case text == "" || text == layoutAuto:
		case !slices.Contains(layouts, text):
			r.bad(n, "unknown layout %q: use one of %s", text, strings.Join(layouts, ", "))
		default:
			*into = team.PaneLayout(text)
		}
	}
}

// command reads a list of words, or one line for bash.
func (r *reader) command(into *[]string) func(ast.Node) {
	return func(n ast.Node) {
		switch v := r.plain(n).(type) {
		case *ast.SequenceNode:
			for _, e := range v.Values {
				var word string
				r.scalar("a word of command", &word)(e)
				*into = append(*into, word)
			}
		case nil:
		default:
			var line string
			r.text("command", &line)(v)
			if strings.TrimSpace(line) != "" {
				*into = []string{"bash", "-c", line}
			}
		}
	}
}

func (r *reader) env(into *map[string]string) func(ast.Node) {
	return func(n ast.Node) {
		pairs, ok := r.pairs(n, "env")
		if !ok {
			return
		}
		env := map[string]string{}
		for _, p := range pairs {
			key, ok := r.key(p)
			if !ok {
				continue
			}
			if _, twice := env[key]; twice {
				r.bad(p.Key, "variable %q is given twice", key)
				continue
			}
			if key == "" || strings.ContainsAny(key, "=\x00") {
				r.bad(p.Key, "%q cannot name a variable", key)
				continue
			}
			var v string
			r.scalar("variable "+key, &v)(p.Value)
			if strings.ContainsRune(v, 0) {
				r.bad(p.Value, "variable %s contains a NUL byte", key)
			}
			env[key] = v
		}
		*into = env
	}
}
