package teamctl_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/teamctl/teamctl"

// room is a floor plan entry: a directory of packages and what they may import.
// Entries of may are rooms; a room stands for its own folder and for those below
// that have no entry of their own. libs are third-party modules. never are
// standard library packages (with everything below them). why is shown to
// whoever draws a new arrow.
type room struct {
	may   []string
	libs  []string
	never []string
	why   string
}

// leaf is the room of utilities that know nothing of teams, which any room but team may ask for.
const leaf = "internal"

const (
	sqlite   = "github.com/mattn/go-sqlite3"
	fsnotify = "github.com/fsnotify/fsnotify"
	xsys     = "golang.org/x/sys"
	xterm    = "golang.org/x/term"
	xsync    = "golang.org/x/sync"
	multierr = "github.com/hashicorp/go-multierror"
	yaml     = "github.com/goccy/go-yaml"
	guuid    = "github.com/google/uuid"
)

// noSQL and noExec are what most rooms never touch.
var (
	noSQL  = []string{"database/sql"}
	noExec = []string{"database/sql", "os/exec"}
)

// rooms is the house: arrows go down only, rooms of one floor never see each other.
var rooms = map[string]room{
	"team": {
		never: []string{"database/sql", "os/exec", "net", "syscall"},
		why:   "team is the words that every room uses: it touches no database, process or network, and needs no library",
	},
	leaf: {
		may:   []string{"internal/dirwatch"},
		libs:  []string{xsys, "github.com/charmbracelet/x"},
		never: noSQL,
		why:   "internal packages are leaf utilities: they know nothing of teams",
	},
	"internal/dirwatch": {
		may: []string{"team"}, libs: []string{fsnotify}, never: noSQL,
		why: "watches directories for any room, in a type of team, so that signatures of the library can name it",
	},
	"internal/gitenv": {
		never: append([]string{"net", "os"}, noExec...),
		why:   "which variables of an environment are git's own, for whoever starts something: names, in one place",
	},
	"internal/openpty": {
		libs: []string{xsys, "github.com/creack/pty"}, never: noExec,
		why: "a pseudoterminal, and what a library gets wrong about it, in one place",
	},
	"internal/fakecli": {
		libs: []string{"github.com/coder/websocket", "github.com/coder/acp-go-sdk", "github.com/modelcontextprotocol/go-sdk", xterm}, never: noSQL,
		why: "stand-ins for agent CLIs, for tests and benchmarks only: no program that people get links them",
	},
	"internal/proc": {
		may: []string{"team", leaf, "backends"}, libs: []string{xsys}, never: noExec,
		why: "processes by identity; starts none itself",
	},
	"internal/cgroup": {
		may: []string{"team"}, libs: []string{xsys}, never: append([]string{"net"}, noExec...),
		why: "control groups are files: it says what a group holds and does, and starts nothing",
	},
	"internal/run": {
		may: []string{"team", leaf, "backends", "internal/proc", "internal/cgroup"}, never: append([]string{"net"}, noSQL...),
		why: "a person's command, run to its end with all that it has started; which, where and why others know",
	},

	"backends": {
		may: []string{"team", leaf}, never: noExec,
		why: "the contract of a backend: types only, so that whoever imports it starts nothing",
	},
	"backends/bundle": {
		may: []string{"team", leaf, "backends"}, libs: []string{xsys}, never: []string{"database/sql", "os/exec", "net/http"},
		why: "files and datagrams about a member, for whoever writes or reads one: it starts, watches and ends no process",
	},
	"backends/shim": {
		may: []string{"team", leaf, "backends", "internal/proc", "internal/cgroup", "backends/bundle"}, libs: []string{xsys}, never: []string{"database/sql", "net/http"},
		why: "one shim lives per agent: every import costs memory two hundred times",
	},
	"backends/holder": {
		may: []string{"team", leaf, "backends", "internal/proc", "internal/cgroup", "backends/bundle"}, libs: []string{xsys}, never: []string{"database/sql", "os/exec", "net"},
		why: "starts, adopts and ends shims for every backend: how a terminal is made, the backend says",
	},
	"backends/tmux": {
		may: []string{"team", leaf, "backends", "internal/proc", "backends/bundle", "backends/holder", "internal/cgroup"}, libs: []string{xsys}, never: noSQL,
		why: "a backend knows no other backend and nothing of tasks or messages",
	},
	"backends/pty": {
		may: []string{"team", leaf, "internal/openpty", "backends", "internal/proc", "backends/bundle", "backends/holder", "backends/shim", "internal/cgroup"}, libs: []string{xsys, xterm, "github.com/clipperhouse/displaywidth"}, never: noSQL,
		why: "a backend knows no other backend and nothing of tasks or messages",
	},
	"backends/inproc": {
		may: []string{"team", "backends", "internal/proc", "backends/bundle"}, never: noExec,
		why: "the in-process backend is handed the function to run; it does not know the agent",
	},
	"backends/backendtest": {
		may: []string{"team", "backends", "internal/proc", "backends/bundle", "backends/shim", leaf}, libs: []string{xsys}, never: noSQL,
		why: "one suite for every backend: it knows the contract and no implementation",
	},
	"ledger": {
		may: []string{"team", leaf, "internal/dirwatch"}, libs: []string{sqlite, xsys, guuid}, never: []string{"os/exec", "net"},
		why: "the ledger is SQLite and nothing else; the only room that knows SQL",
	},
	"inbox": {
		may: []string{"team", leaf, "internal/dirwatch"}, libs: []string{xsys, "github.com/nightlyone/lockfile"}, never: append([]string{"net"}, noExec...),
		why: "a mailbox works when the database does not",
	},
	"mail": {
		may: []string{"team", leaf, "inbox", "ledger"}, libs: []string{multierr}, never: append([]string{"net"}, noExec...),
		why: "messages between the ledger and the mailboxes: it starts nothing, and what a message means others decide",
	},
	"worktree": {
		may: []string{"team", leaf, "internal/gitenv", "internal/run"}, libs: []string{xsys}, never: append([]string{"net"}, noSQL...),
		why: "worktree runs git; when, others decide",
	},

	"internal/hooks": {
		may: []string{"team", leaf, "internal/run", "ledger"}, libs: []string{yaml}, never: append([]string{"net"}, noSQL...),
		why: "people's own commands are asked by the tools and by the supervisor; what they say is written down, and carried out by others",
	},
	"internal/publish": {
		may: []string{"team", leaf, "ledger"}, never: append([]string{"net"}, noExec...),
		why: "config.json from the ledger, for every process that changes the roster",
	},
	"internal/taskfile": {
		may: []string{"team", leaf, "ledger"}, never: noExec,
		why: "one form of the task files of other clients: what they mean here, others decide",
	},
	"internal/sink": {
		may: []string{"team", "internal/run"}, never: noExec,
		why: "tells the world outside: what it says and when, others decide",
	},
	"internal/permit": {
		may: []string{"team"}, libs: []string{"github.com/bmatcuk/doublestar"}, never: append([]string{"net"}, noExec...),
		why: "rules over requests: it looks at files, decides, and carries out nothing",
	},
	"supervisor/loop": {
		may: []string{"team", "backends", "ledger", "inbox", "mail"}, never: append([]string{"net"}, noExec...),
		why: "what the supervisor's loop offers its parts, in types: it runs nothing",
	},
	"supervisor/looptest": {
		may: []string{"team", "ledger", "supervisor/loop"}, never: noExec,
		why: "a loop that tests run: no program links it",
	},
	"supervisor/policy": {
		may: []string{"team", leaf, "internal/proc", "backends", "ledger"}, never: append([]string{"net"}, noExec...),
		why: "numbers, clocks and what follows an exit, as values: it starts and ends nothing",
	},
	"supervisor/rest": {
		may: []string{"team", "internal/dirwatch"}, never: append([]string{"net"}, noExec...),
		why: "watches the log of a member and knows nothing else of it",
	},
	"supervisor/approval": {
		may: []string{"team", "ledger", "inbox", "internal/permit"}, never: append([]string{"net"}, noExec...),
		why: "what answers a member's request: it asks nobody and changes nothing",
	},
	"supervisor/quota": {
		may: []string{"team", "ledger"}, never: append([]string{"net"}, noExec...),
		why: "who may use a model now, for every process that asks one",
	},
	"supervisor/hands": {
		may: []string{"team", "ledger"}, never: append([]string{"net"}, noExec...),
		why: "who can take tasks, and which no member can: it reads the ledger and changes nothing",
	},
	"supervisor/state": {
		may: []string{"team", "ledger"}, never: append([]string{"net"}, noExec...),
		why: "what an agent does, from what was observed: pure functions, but for the age of a log",
	},
	"supervisor/usage": {
		may: []string{"team", "ledger", "supervisor/loop", "supervisor/quota"}, never: append([]string{"net"}, noExec...),
		why: "counts what members use and acts on its limits: what ends a turn, the delivery does",
	},
	"supervisor/delivery": {
		may: []string{"team", "backends", "ledger", "inbox", "mail", "supervisor/loop", "supervisor/policy", "supervisor/approval", "supervisor/quota", "supervisor/state"}, never: append([]string{"net"}, noExec...),
		why: "gives mail to channels and takes in what they see: how a channel works, internal/courier says",
	},
	"supervisor/trees": {
		may: []string{"team", "internal/run", "ledger", "worktree", "supervisor/loop"}, never: append([]string{"net"}, noExec...),
		why: "the worktrees of members: git is in worktree, and when one is made the core decides",
	},
	"supervisor/rename": {
		may: []string{"team", leaf, "backends/bundle", "ledger", "supervisor/loop"}, never: append([]string{"net"}, noExec...),
		why: "a member's new name in mailbox, bundle and ledger: whether it has a process, and its pane, are the core's",
	},
	"supervisor/found": {
		may: []string{"team", leaf, "backends/bundle", "ledger", "supervisor/trees"}, never: append([]string{"net"}, noExec...),
		why: "the roster as files have it, for a ledger that is made anew: it changes nothing",
	},
	"supervisor": {
		may:  []string{"supervisor/approval", "supervisor/loop", "supervisor/policy", "supervisor/rename", "supervisor/rest", "supervisor/trees", "supervisor/delivery", "supervisor/hands", "supervisor/quota", "supervisor/state", "supervisor/usage", "team", leaf, "internal/dirwatch", "backends", "internal/proc", "internal/cgroup", "internal/run", "backends/bundle", "backends/holder", "ledger", "inbox", "mail", "worktree", "internal/hooks", "internal/publish", "internal/sink"},
		libs: []string{multierr}, never: noSQL,
		why: "the supervisor is handed its backends and what to launch: it knows no terminal, tool, agent or screen",
	},
	"tool": {
		may:  []string{"team", leaf, "internal/dirwatch", "backends", "internal/cgroup", "internal/proc", "internal/run", "ledger", "inbox", "mail", "worktree", "internal/hooks", "internal/permit", "internal/publish", "internal/sink", "internal/taskfile", "supervisor", "supervisor/found", "supervisor/trees", "supervisor/approval", "supervisor/hands", "supervisor/quota", "supervisor/state", "tool/teamfile"},
		libs: []string{xsys}, never: append([]string{"flag"}, noSQL...),
		why: "every operation once, for every edge: no printing, no flags, no MCP",
	},
	"tool/teamfile": {
		may: []string{"team", leaf, "ledger", "internal/hooks", "internal/permit"}, libs: []string{yaml, "github.com/google/jsonschema-go"}, never: append([]string{"net"}, noExec...),
		why: "teamctl.yaml and its schema: reading a file runs nothing",
	},
	"tool/op": {
		may: []string{"team", "ledger", "tool", "tool/teamfile"}, libs: []string{"github.com/google/jsonschema-go"}, never: append([]string{"net"}, noExec...),
		why: "the operations as other programs call them: schemas and descriptions over tool, which does the work; a member has the schema that it has in a team file",
	},
	"tool/mcp": {
		may: []string{"team", "ledger", "tool", "tool/op"}, libs: []string{"github.com/modelcontextprotocol/go-sdk"}, never: noExec,
		why: "serves the operations by the MCP SDK, which agent/mcp calls others with",
	},
	"agent/skills": {
		may: []string{"team", leaf}, libs: []string{yaml}, never: append([]string{"net"}, noExec...),
		why: "texts that people keep for agents: it reads files",
	},
	"agent/secrets": {
		never: append([]string{"net"}, noExec...),
		why:   "replaces known values in a text",
	},
	"agent/confine": {
		libs: []string{xsys}, never: append([]string{"net"}, noExec...),
		why: "bounds the thread that starts a command: the runner starts it",
	},
	"agent/specfile": {
		may: []string{"team", leaf}, libs: []string{"github.com/BurntSushi/toml"}, never: append([]string{"net"}, noExec...),
		why: "agent specs as files that people write: it reads and writes them, the ledger keeps them",
	},
	"agent/tools": {
		may:   []string{"team", leaf, "internal/run", "internal/permit", "agent/model", "agent/secrets"},
		libs:  []string{"github.com/bmatcuk/doublestar", "github.com/aymanbagabas/go-udiff", "golang.org/x/net", guuid},
		never: noSQL,
		why:   "what an agent does by itself in its worktree: it knows no task, no mail and no ledger",
	},
	"agent/model": {
		may: []string{"team", leaf}, never: noExec,
		why: "the one room that knows how models are asked: it knows nothing of tasks, mail or ledgers; the scripts of its script model are a leaf",
	},
	"agent/model/config": {
		may: []string{"team", leaf, "agent/model"}, libs: []string{yaml}, never: noSQL,
		why: "reads config.yaml and opens what it names; a key may come from a command",
	},
	"agent/mcp": {
		may: []string{"team", leaf, "internal/run", "agent/model"}, libs: []string{"github.com/modelcontextprotocol/go-sdk", guuid}, never: noSQL,
		why: "calls other people's MCP servers, where tool/mcp serves; no other room sees the SDK",
	},
	"agent": {
		may: []string{"team", leaf, "internal/run", "ledger", "inbox", "agent/llm"}, never: noSQL,
		why: "an agent works through the tools, like any other agent, and its commands through the one runner: it never sees the backends, the supervisor or git worktrees",
	},
	"agent/llm": {
		may: []string{"team", "ledger", "agent/model"}, never: append([]string{"net"}, noExec...),
		why: "the loop of a turn: models, tools and mail come in by interfaces, so it starts nothing and reaches nobody by itself",
	},
	"agent/models": {
		may: []string{"team", "tool", "agent/model", "agent/model/config"}, never: noSQL,
		why: "what models there are, for every program that carries out the operations: no conversation is needed for it",
	},
	"agent/program": {
		may: []string{"team", "ledger", "supervisor/quota", "tool", "tool/op", "agent", "agent/llm", "agent/model", "agent/model/config", "agent/tools", "agent/skills", "agent/secrets", "agent/mcp", "agent/confine"}, never: noSQL,
		why: "the program of a member that a model leads: gives the loop its models, its tools and the team's operations",
	},
	"internal/adapter": {
		may: []string{"team", "internal/gitenv"}, libs: []string{yaml}, never: append([]string{"net"}, noExec...),
		why: "adapters are pure functions: they describe a launch and never execute anything",
	},
	"internal/courier": {
		may: []string{"team", leaf, "internal/dirwatch", "internal/adapter"}, libs: []string{xsys, "github.com/tailscale/hujson"}, never: noSQL,
		why: "what the ways into agents share, and the ways that any program has: it knows no supervisor, ledger or backend",
	},
	"internal/courier/codex": {
		may: []string{"team", "internal/adapter", "internal/courier"}, libs: []string{"github.com/coder/websocket"}, never: noExec,
		why: "speaks to the app-server of Codex, and to nothing else",
	},
	"internal/courier/opencode": {
		may: []string{"team", "internal/adapter", "internal/courier"}, never: noExec,
		why: "speaks to the server of opencode, and to nothing else",
	},
	"internal/courier/acp": {
		may: []string{"team", "internal/adapter", "agent", "backends/bundle", "ledger", "supervisor/approval", "supervisor/quota", "tool"}, libs: []string{"github.com/coder/acp-go-sdk"}, never: append([]string{"net"}, noSQL...),
		why: "the process of a member whose agent speaks the protocol: its mail comes by the agent's conversation, its questions go through the tools",
	},
	"internal/courier/couriertest": {
		may: []string{"team", leaf}, never: noExec,
		why: "what the tests of the channels share: no program links it",
	},
	"internal/courier/hook": {
		may: []string{"team", leaf, "inbox", "ledger", "mail", "supervisor/quota", "tool", "internal/adapter", "internal/courier"}, never: noExec,
		why: "both sides of hooks: what an agent's hook does is done through the tools, like everything that an agent does; the channel types",
	},
	"internal/bridge": {
		may: []string{"team", leaf, "internal/dirwatch", "inbox", "ledger", "internal/publish", "internal/taskfile", "tool", "internal/adapter"}, never: append([]string{"net"}, noExec...),
		why: "joins our team with files of another program: through the tools and mailboxes, with no process and no network",
	},
	"internal/hookcall": {
		may: []string{"team", leaf}, libs: []string{xsys}, never: append([]string{"net", "encoding/json"}, noExec...),
		why: "an agent waits for it at every tool call: it asks the supervisor by system calls, and links nothing that takes time to start",
	},
	"internal/control": {
		may: []string{"team", leaf, "internal/gitenv", "internal/hookcall", "ledger", "mail", "supervisor", "tool"}, libs: []string{xsys}, never: noSQL,
		why: "the socket carries operations; it has no logic of its own",
	},
	"internal/view": {
		may:  []string{"team", leaf},
		libs: []string{"github.com/charmbracelet/x"}, never: append([]string{"net"}, noExec...),
		why: "what screens show, as data and pure functions: it reads nothing by itself",
	},
	"internal/view/viewtest": {
		may: []string{"internal/view"}, never: append([]string{"net"}, noExec...),
		why: "the team that docs/screens shows, for tests that draw it: no program but scripts/screens links it",
	},
	"internal/view/page": {
		may: []string{leaf, "internal/view"}, never: append([]string{"net"}, noExec...),
		why: "documents for a browser, from the data of view alone: they know no server",
	},
	"tool/look": {
		may: []string{"team", leaf, "internal/dirwatch", "internal/view", "ledger", "supervisor/hands", "supervisor/state", "tool"}, never: append([]string{"net"}, noExec...),
		why: "fills what screens show from the ledger and from what stands behind it, and changes nothing",
	},
	"internal/tui": {
		may:  []string{"team", leaf, "internal/view", "internal/tui/term"},
		libs: []string{"github.com/charmbracelet/x", yaml, "github.com/google/jsonschema-go"}, never: append([]string{"net"}, noExec...),
		why: "screens read and act through interfaces that package view declares: they can neither lose nor change anything by themselves",
	},
	"internal/tui/term": {
		may:  []string{leaf},
		libs: []string{"github.com/charmbracelet/x", "github.com/charmbracelet/colorprofile", xsys, xterm}, never: append([]string{"net"}, noExec...),
		why: "the terminal of the full screen: it knows nothing of teams",
	},

	"internal/web": {
		may: []string{"team", leaf, "internal/view", "internal/view/page"}, libs: []string{"rsc.io/qr"}, never: noExec,
		why: "the page as a server: it reads and acts through interfaces that package view declares, as the screen does; the link of it is a QR code in a terminal",
	},
	"internal/web/webtest": {
		libs: []string{"github.com/chromedp"}, never: noSQL,
		why: "a real browser, for tests of the page: no program links it",
	},

	"cmd": {
		may:  []string{"team", leaf, "internal/dirwatch", "internal/gitenv", "backends", "internal/proc", "internal/cgroup", "internal/run", "backends/bundle", "backends/shim", "backends/tmux", "backends/pty", "backends/inproc", "ledger", "inbox", "worktree", "supervisor", "supervisor/policy", "supervisor/delivery", "supervisor/state", "tool", "tool/mcp", "tool/op", "tool/look", "tool/teamfile", "agent", "agent/models", "agent/program", "agent/model", "agent/model/config", "agent/specfile", "internal/adapter", "internal/courier", "internal/courier/codex", "internal/courier/opencode", "internal/courier/acp", "internal/courier/hook", "internal/hookcall", "internal/control", "internal/tui", "internal/view", "internal/view/page", "internal/web", "internal/bridge"},
		libs: []string{"github.com/spf13", xterm}, never: noSQL,
		why: "cmd wires the rooms and speaks to people; libraries that do the work belong to a room",
	},
	"scripts": {may: []string{"internal/fakecli", "team", leaf, "backends", "internal/proc", "backends/bundle", "backends/inproc", "ledger", "inbox", "supervisor", "tool", "tool/op", "tool/look", "tool/teamfile", "internal/control", "internal/tui", "internal/view", "internal/view/viewtest"}, libs: []string{xsys, "github.com/google/jsonschema-go"}, why: "programs for developers"},
	"bench":   {may: []string{"internal/fakecli", "team", leaf, "backends", "backends/bundle", "backends/tmux", "backends/pty", "backends/inproc", "ledger", "inbox", "mail", "worktree", "supervisor", "tool", "agent", "agent/llm", "agent/model", "internal/adapter", "internal/courier", "internal/control", "internal/tui/term"}, libs: []string{xsys, sqlite, "github.com/creack/pty"}, why: "programs for developers"},
	".": {
		may: []string{"team", "tool", "internal/control", "agent/models"}, never: noSQL,
		why: "the front door of the library: the operations, with a supervisor for those that need one",
	},
}

// testLibs are for test files, on top of the libraries of their room.
var testLibs = []string{
	yaml,                                     // recorded exchanges
	fsnotify,                                 // the watcher that a test makes fail
	"github.com/google/go-cmp",               // differences that can be read
	"github.com/google/jsonschema-go",        // what the MCP SDK takes as a schema
	"github.com/modelcontextprotocol/go-sdk", // a client for the MCP server
	"github.com/rogpeppe/go-internal",        // txtar scripts
	"go.uber.org/goleak",                     // goroutines that a package leaves
	"pgregory.net/rapid",                     // models and properties
	xsys,                                     // signals, limits, locks
}

// testRooms are folders that the tests of a room may import, but not its code.
var testRooms = map[string][]string{
	"backends/tmux":             {"backends/backendtest"},
	"backends/pty":              {"backends/backendtest"},
	"backends/inproc":           {"backends/backendtest"},
	"backends/shim":             {"backends/holder", "internal/openpty"}, // what ends a shim that a test killed; its terminal
	"internal/fakecli":          {leaf, "internal/adapter"},              // the stand-in for a model's provider; what reads the programs' transcripts
	"internal/hooks":            {"internal/proc"},                       // to see that nothing is left of a command
	"internal/courier":          {"internal/courier/couriertest", "internal/openpty"},
	"internal/tui":              {"internal/openpty", "internal/view/viewtest"},
	"internal/tui/term":         {"internal/openpty", "backends/pty"},
	"internal/view/page":        {"team"}, // the states of a sample
	"internal/web":              {"internal/view/viewtest", "internal/web/webtest"},
	"internal/courier/codex":    {"internal/fakecli", "internal/courier/couriertest", leaf},
	"internal/courier/opencode": {"internal/fakecli", "internal/courier/couriertest"},
	"internal/courier/acp":      {"internal/fakecli", "internal/courier/couriertest"},
	"cmd":                       {"internal/openpty", "internal/web/webtest", "mail"},
	"internal/courier/hook":     {"internal/courier/couriertest", "supervisor", "supervisor/approval"},
	"agent":                     {"internal/proc", "agent/model", "tool"}, // to see that nothing is left of a command; the script model; the board that a worker works on
	"agent/tools":               {"internal/proc"},                        // likewise
	"agent/confine":             {"team", "internal/run"},                 // to confine a real command
	"scripts":                   {"mail"},
	"supervisor":                {"supervisor/looptest"},
	"supervisor/trees":          {"supervisor/looptest"},
	"supervisor/approval":       {"supervisor/looptest"},
	"supervisor/delivery":       {"supervisor/looptest"},
	"supervisor/rename":         {"supervisor/looptest"},
	"supervisor/quota":          {"supervisor/looptest"},
	"supervisor/usage":          {"supervisor/looptest"},
	"internal/control":          {"backends", "internal/publish"}, // a supervisor to serve needs one
	".":                         {leaf, "ledger"},                 // reads test names out of documents; the examples use what the operations return
}

// TestArrows reads the imports of every file, for every platform, and compares
// them with the plan of the house.
func TestArrows(t *testing.T) {
	for _, f := range goFiles(t) {
		home := roomOf(f.dir)
		r, ok := rooms[home]
		if !ok {
			t.Errorf("%s: no room %q in the plan: add it to rooms in arrows_test.go, with its reason", f.path, home)
			continue
		}
		for _, imp := range f.imports {
			if why := refuse(home, r, imp, f.test); why != "" {
				t.Errorf("%s imports %s: %s (%s: %s)", f.path, imp, why, home, r.why)
			}
		}
	}
}

// refuse says why a file of the room may not import imp; "" if it may.
func refuse(home string, r room, imp string, test bool) string {
	if imp == "C" {
		return "cgo belongs to the SQLite driver alone"
	}
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case imp == module || strings.HasPrefix(imp, module+"/"):
		other := roomOf(strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"))
		if other == home || slices.Contains(r.may, other) || test && slices.Contains(testRooms[home], other) {
			return ""
		}
		return "an arrow that the plan does not have"
	case strings.Contains(first, "."):
		if within(imp, r.libs) || test && within(imp, testLibs) {
			return ""
		}
		return "a library that is not this room's"
	case imp == "net/url" || imp == "net/netip": // parse text, open no socket
		return ""
	case !test && within(imp, r.never):
		return "a part of the standard library that this room does without"
	}
	return ""
}

// TestPlan keeps the plan itself honest: every room named exists in it, has a
// reason, and no arrow leads back up.
func TestPlan(t *testing.T) {
	const (
		fresh = iota
		open
		done
	)
	state := map[string]int{}
	var walk func(name string, trail []string)
	walk = func(name string, trail []string) {
		trail = append(trail, name)
		switch state[name] {
		case open:
			t.Errorf("arrows in a circle: %s", strings.Join(trail, " -> "))
			return
		case done:
			return
		}
		state[name] = open
		for _, next := range rooms[name].may {
			if _, ok := rooms[next]; !ok {
				t.Errorf("room %s may import %q, which is no room", name, next)
				continue
			}
			walk(next, trail)
		}
		state[name] = done
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if rooms[name].why == "" {
			t.Errorf("room %s has no reason", name)
		}
		if name != "team" && slices.Contains(rooms["team"].may, name) {
			t.Errorf("team imports %s", name)
		}
		walk(name, nil)
	}
}

// TestPlanIsUsed: an allowance that no file uses is an arrow that anyone may draw
// unseen, and a room without files is a plan of another house.
func TestPlanIsUsed(t *testing.T) {
	for _, complaint := range unused(rooms, testRooms, testLibs, goFiles(t)) {
		t.Error(complaint)
	}
}

// unused lists the allowances of a plan that none of the files needs. What only
// tests import belongs in testRooms or testLibs.
func unused(plan map[string]room, testRooms map[string][]string, testLibs []string, files []goFile) []string {
	used := map[string]bool{}     // home and room or library, by code
	usedTest := map[string]bool{} // the same, by tests
	populated := map[string]bool{}
	for _, f := range files {
		home := roomOf(f.dir)
		populated[home] = true
		for _, imp := range f.imports {
			key := imp // a library, unless the module has it
			if imp == module || strings.HasPrefix(imp, module+"/") {
				key = roomOf(strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"))
			}
			if f.test {
				usedTest[home+" "+key] = true
			} else {
				used[home+" "+key] = true
			}
		}
	}
	// imports reports whether the room has an import of the package, or of one below it.
	imports := func(in map[string]bool, home, pkg string) bool {
		for key := range in {
			if of, imp, _ := strings.Cut(key, " "); of == home && within(imp, []string{pkg}) {
				return true
			}
		}
		return false
	}
	var complaints []string
	add := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, home := range slices.Sorted(maps.Keys(plan)) {
		r := plan[home]
		if !populated[home] {
			add("room %s has no Go files: remove it from rooms", home)
			continue
		}
		for _, other := range r.may {
			if !used[home+" "+other] {
				add("room %s may import %s, and none of its code does: remove it from may (what its tests need goes to testRooms)", home, other)
			}
		}
		for _, lib := range r.libs {
			if !imports(used, home, lib) {
				add("room %s may use %s, and none of its code does: remove it from libs (what tests need goes to testLibs)", home, lib)
			}
		}
	}
	for _, home := range slices.Sorted(maps.Keys(testRooms)) {
		for _, other := range testRooms[home] {
			if slices.Contains(plan[home].may, other) || !usedTest[home+" "+other] {
				add("tests of %s may import %s, and need no leave or do not use it: remove it from testRooms", home, other)
			}
		}
	}
	for _, lib := range testLibs {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(plan)), func(home string) bool {
			return !slices.Contains(plan[home].libs, lib) && imports(usedTest, home, lib)
		}) {
			add("tests may use %s, and none needs it: remove it from testLibs", lib)
		}
	}
	return complaints
}

// TestUnused shows that an allowance nobody uses is noticed wherever it is.
func TestUnused(t *testing.T) {
	plan := map[string]room{
		"team":   {},
		"ledger": {may: []string{"team", "inbox"}, libs: []string{sqlite, yaml}},
		"inbox":  {may: []string{"team"}},
		"agent":  {why: "no file is in it"},
	}
	files := []goFile{
		{dir: "team"},
		{dir: "ledger", imports: []string{module + "/team", sqlite + "/sub"}},
		{dir: "ledger", test: true, imports: []string{module + "/inbox", module + "/internal/hooks", yaml}},
		{dir: "inbox", test: true, imports: []string{module + "/team"}},
	}
	got := unused(plan, map[string][]string{"ledger": {"internal/hooks", "inbox", "worktree"}}, []string{yaml, xsys}, files)
	want := []string{"agent has no Go files", "inbox may import team", "ledger may import inbox", "ledger may use " + yaml, "of ledger may import inbox", "of ledger may import worktree", "may use " + yaml, "may use " + xsys}
	if len(got) != len(want) {
		t.Fatalf("got %d complaints, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("complaint %d is %q, want one with %q", i, got[i], want[i])
		}
	}
}

// TestRefuse shows that TestArrows would notice.
func TestRefuse(t *testing.T) {
	for _, c := range []struct {
		home, imp string
		test, ok  bool
	}{
		{home: "team", imp: "fmt", ok: true},
		{home: "team", imp: "os/exec"},
		{home: "team", imp: "net/http"},
		{home: "team", imp: module + "/internal/filelock"},
		{home: "ledger", imp: "database/sql", ok: true},
		{home: "ledger", imp: "net/url", ok: true},
		{home: "ledger", imp: module + "/inbox"},
		{home: "ledger", imp: sqlite, ok: true},
		{home: "inbox", imp: "database/sql/driver"},
		{home: "inbox", imp: sqlite},
		{home: "inbox", imp: sqlite + "x"},
		{home: "inbox", imp: module + "/team", ok: true},
		{home: "supervisor", imp: module + "/backends/tmux"},
		{home: "supervisor", imp: module + "/backends", ok: true},
		{home: "agent", imp: module + "/worktree"},
		{home: "internal/adapter", imp: "os/exec"},
		{home: "internal/tui", imp: module + "/ledger"},
		{home: "internal/view", imp: "github.com/charmbracelet/x/ansi", ok: true},
		{home: "internal/tui", imp: "github.com/spf13/cobra"},
		{home: "cmd", imp: module + "/backends/tmux", ok: true},
		{home: "cmd", imp: "C"},
		{home: "tool", imp: "github.com/spf13/cobra"},
		{home: "tool", imp: "github.com/google/go-cmp/cmp"},
		{home: "tool", imp: "github.com/google/go-cmp/cmp", test: true, ok: true},
		{home: "backends/tmux", imp: module + "/backends/backendtest", test: true, ok: true},
		{home: "backends/tmux", imp: module + "/backends/backendtest"},
		{home: "backends/tmux", imp: module + "/backends/pty", test: true},
	} {
		if why := refuse(c.home, rooms[c.home], c.imp, c.test); (why == "") != c.ok {
			t.Errorf("%s imports %s (test %v): got %q, want allowed %v", c.home, c.imp, c.test, why, c.ok)
		}
	}
}

// roomOf is the longest room that dir lies in, or dir's first element.
func roomOf(dir string) string {
	for d := path.Clean(dir); d != "."; d = path.Dir(d) {
		if _, ok := rooms[d]; ok {
			return d
		}
	}
	first, _, _ := strings.Cut(path.Clean(dir), "/")
	return first
}

// within reports whether imp is one of the packages or lies below one.
func within(imp string, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool {
		return imp == p || strings.HasPrefix(imp, p+"/")
	})
}
