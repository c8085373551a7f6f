package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
)

// format is the output format of a command's result.
type format string

const (
	formatText  format = ""      // for people
	formatWide  format = "wide"  // for people: all columns, uncut
	formatJSON  format = "json"  // one document
	formatJSONL format = "jsonl" // one element per line
	formatName  format = "name"  // one name or id per line
)

// shape describes what a command writes as JSON, for docs/cli-json.md. Every command that can be
// run has one.
type shape struct {
	list   string // key of the list in the document; empty if the document is the only element
	name   string // key of an element's name or id, or itself; empty if -o name does not apply
	reads  bool   // changes nothing
	watch  bool   // supports --watch
	stream bool   // always writes one element per line
	file   bool   // -o may name a file for what it writes
	note   string // a sentence on what the golden file does not show
}

// itself marks elements that are strings.
const itself = "."

// notAllStopped is the note of commands that end members.
const notAllStopped = "Where a member rejected or could not be stopped, `members` has all of them with what became of each, beside `error`."

// severalTasks is the note of commands that accept several tasks.
const severalTasks = "With one id the [Task](#task) itself; with several, or a flag in their place, `tasks`. Where some of them were refused, `tasks` are the others, and the exit status says so."

// shapes has every command with a result, by its short form if it has one.
var shapes = map[string]shape{
	"ls": {
		list: "teams", name: "team", reads: true, watch: true,
		note: "Since `supervisorDownSince` nothing keeps `running` current: no supervisor is up although members should run or, with `supervisorSilent`, one does not answer.",
	},
	"create": {name: "team_name"},
	"status": {
		name: "team", reads: true, watch: true,
		note: "Where no team is chosen, `team` is left out. Of `waiting`, `what` is for people, and `command` shows more; `next` are commands. With `--format json` one line: `team`, `needs` (what waits for a person), `active`, `ready`, `failed`, `stuck`, `done` and `total` of its tasks, optional `supervisorDownSince`, `supervisorSilent` (it runs and does not answer) and `unread` (why nothing is known); with `--all` a list of those, `teams`.",
	},
	"show": {
		name: "kind", reads: true, watch: true,
		note: "`kind` is `team`, `member`, `task`, `approval` or `message`, and under that key is what board, ps, task show, approvals show and message show write of it.",
	},
	"delete": {name: "team_name"},
	"down":   {name: "team_name"},
	"up": {
		list: "members", name: "name",
		note: "`changes` are what differed from the file (`what` is `member`, `task`, `edge`, `setting` or, in a dry run, `team`), `waiting` parts of it that are left out until a person allows them, and `outcome` is `already_up` where nothing differed.",
	},
	"graph": {
		list: "nodes", name: "id", reads: true, watch: true,
		note: "`nodes` are tasks as of board with `dependsOn`, their `layer` and `row` in the drawing, and `critical`; `edges` lead `from` a task `to` one that depends on it over `rows`, one of each layer; `crossings` counts edges that cross; `criticalPath` are ids.",
	},
	"timeline": {
		list: "lanes", name: "member", reads: true, watch: true,
		note: "Of each lane `spans` (`state` is `working`, `waiting` for a person, `limited`, `idle`, `down` or `unknown`) with `why`, `tasks` are attempts with their `end` (`completed`, `failed`, `released`, `sent back`, none while it is held), and `totals` seconds in each state. `historyFrom` is the oldest event that is left.",
	},
	"report": {
		reads: true, file: true,
		note: "All that the report says, masked: `timeline` and `graph` as of these commands; a `took` is nanoseconds, and so are `durations`; `cut` is what was left out. With `-o FILE` only `file` and `bytes`.",
	},
	"ui":  {note: "It needs a terminal and writes no JSON: board has the same."},
	"web": {note: "`url` of the page and the `login` link, once, before it serves."},
	"web ls": {
		list: "sessions", name: "id", reads: true,
	},
	"web revoke": {},
	"board":      {reads: true, note: "`stalledSince` and `limitedTo` of a member as in `ps`, as times."},
	"wait": {
		list: "tasks", name: "id", reads: true,
		note: "With `--member` it is `member`, a [Member](#member); with `--mail` `inbox`, entries as of inbox.",
	},
	"settings": {list: "settings", name: "name", reads: true, watch: true},
	"usage":    {list: "members", name: "name", reads: true, note: "With `--by task` also `tasks`, by what they used, and the `rest` that no task is known for; with `--by day` `days`, the newest first."},
	"edge ls":  {list: "edges", name: "from", reads: true, watch: true},
	"edge add": {name: "from"},
	"edge rm":  {name: "from"},
	"events":   {name: "seq", reads: true, stream: true},
	"prune":    {},
	"relocate": {
		list: "teams", name: "team",
		note: "`status` is `relocated` or `already_here`. `from` is the directory before; `worktrees` moved along, and the members in `restarted` ran with the old paths.",
	},
	"chat":            {note: "With `--once` the turn that answered: `state` and `answer`."},
	"review show":     {list: "reviews", name: "member", reads: true, note: "A comment whose lines were found has `line`, where they are now; else `changed` is true. `reviewed` are the files that you have marked as reviewed and that have not changed since."},
	"review add":      {name: "name"},
	"review send":     {name: "message_id", note: "`task` is the id of the task with `--task`, `file` where comments are that were too long for a message."},
	"review answer":   {name: "name"},
	"session ls":      {list: "sessions", name: "key", reads: true},
	"session show":    {reads: true, note: "`session`, its `entries` and `turns`."},
	"session export":  {note: "`--json` writes what session show does."},
	"session model":   {name: "session_key"},
	"session agent":   {name: "session_key"},
	"session deliver": {name: "session_key"},
	"session compact": {},
	"session spawn":   {name: "session_key"},
	"session send":    {name: "session_key"},
	"session history": {list: "entries", name: "seq", reads: true},
	"session stop":    {name: "session_key"},
	"session wake":    {name: "session_key"},
	"session oneshot": {name: "session_key"},
	"session close":   {},
	"memory ls":       {list: "entries", name: "key", reads: true, watch: true},
	"memory search":   {list: "entries", name: "key", reads: true, note: "The best match comes first."},
	"memory show":     {name: "key", reads: true},
	"memory add":      {name: "key"},
	"memory rm":       {list: "removed", name: itself},
	"memory export":   {note: "What it writes is the export itself, in the form of `--format`."},
	"memory import":   {},
	"ledger check": {
		list: "copies", name: "path", reads: true,
		note: "`problems` is empty for a sound ledger; else the exit status is 7.",
	},
	"ledger backup": {name: "path"},
	"ledger recover": {
		name: "kept",
		note: "`status` is `recovered`, or `sound` where nothing was changed. `rows`, `pages`, `copied` and `files` count by table what came from the damaged file, its loose pages, the copy and other files; `missing` says in words what is lost or may be.",
	},
	"doctor":  {list: "checks", name: "name", reads: true},
	"version": {name: "version", reads: true},

	"agents":        {list: "agents", name: "name", reads: true},
	"agents ls":     {list: "agents", name: "name", reads: true},
	"agents show":   {name: "name", reads: true},
	"agents create": {name: "agent_id"},
	"agents update": {name: "agent_id"},
	"agents rm":     {name: "agent_id"},
	"agents export": {list: "files", name: itself},
	"agents import": {list: "agents", name: "agent_id"},
	"models":        {list: "providers", name: "provider", reads: true, note: "A context, a price or a problem that nobody has named is left out."},
	"agents test": {
		list: "checks", name: "check",
		note: "`status` is `yes`, `no` or `not tried`; `screen` is the end of what it showed when the check failed, line by line, and optional. The exit status is 7 if one is `no`.",
	},
	"call": {
		list: "operations", name: "name", reads: true,
		note: "With an operation it writes what docs/tools.md says of that one, always as JSON, and takes no `-o name`.",
	},
	"mcp": {name: "url", note: "Only `--http` writes something: `url`, and `token` unless it came from a file. Else standard output is the client's, in MCP."},
	"bridge claude": {
		stream: true,
		note:   "Each line is one thing: `what` was done or refused, to what by `name`, and `why`. Mail and tasks that come here are `.here`, the others `.there`.",
	},
	"mcp config":        {name: "client", reads: true},
	"usage budget":      {list: "members", name: "name"},
	"usage resume":      {name: "resumed", note: "`resumed` is the agent whose usage limit is over."},
	"docs man":          {list: "files", name: itself, note: "`dir` is the directory as given, `files` the names of all files in it that were written."},
	"docs completions":  {list: "files", name: itself, note: "As of docs man."},
	"service install":   {name: "path", note: "`path` and `text` are the unit's, `enable` and `disable` lists of what to run."},
	"service uninstall": {name: "path", note: "As of service install; `outcome` is `already_removed` where there was no unit."},

	"ps": {
		list: "members", name: "name", reads: true, watch: true,
		note: "`socket` while a supervisor runs. Of each member `isIdle`, `awaitingPlanApproval`, `shutdownRequested`, `pendingMessages` (sent, and not known to have reached it), `tokens` that it has used, where its CLI tells, and `stalledSince` (Unix ms) of one that works and has shown nothing for ten minutes: its last sign.",
	},
	"spawn":       {list: "members", name: "name"},
	"start":       {list: "members", name: "name"},
	"restart":     {list: "members", name: "name"},
	"pause":       {list: "members", name: "name"},
	"resume":      {list: "members", name: "name"},
	"shutdown":    {list: "members", name: "name", note: notAllStopped},
	"stop":        {list: "members", name: "name", note: notAllStopped},
	"kill":        {list: "members", name: "name", note: notAllStopped},
	"leave":       {name: "left", note: "`left` and `outcome`: `left` or `already_left`."},
	"join":        {note: "`member` is the [Member](#member), `env` what its environment needs but for the token, which stands in the file `tokenFile`."},
	"recover":     {list: "members", name: "name"},
	"pane hide":   {name: "member"},
	"pane unhide": {name: "member"},
	"member show": {name: "name", reads: true, watch: true, note: "As an element of ps."},
	"attach": {
		reads: true,
		note:  "It only says how: of a terminal in tmux `argv`, of one of its own `socket` and `generation`.",
	},
	"explain":   {name: "member", reads: true},
	"interrupt": {name: "member", note: "`member`, and `outcome`: `interrupted`."},
	"mode":      {name: "member"},
	"role":      {name: "member"},
	"rename":    {name: "name", note: "`status` is `renamed` or `already_renamed`; `was` is the name as it was given. With `--restart`, `started` is true if it was started in the end."},
	"logs":      {reads: true, stream: true},
	"capture":   {reads: true},

	"task ls":       {list: "tasks", name: "id", reads: true, watch: true},
	"task show":     {name: "id", reads: true, watch: true},
	"task history":  {list: "events", name: "seq", reads: true, watch: true},
	"task export":   {list: "tasks", name: "id", reads: true},
	"task auto":     {reads: true},
	"task add":      {list: "tasks", name: "id"},
	"task claim":    {},
	"task complete": {list: "tasks", name: "id", note: severalTasks},
	"task fail":     {list: "tasks", name: "id", note: severalTasks},
	"task release":  {list: "tasks", name: "id", note: severalTasks},
	"task retry":    {list: "tasks", name: "id", note: severalTasks},
	"task cancel":   {list: "tasks", name: "id", note: severalTasks},
	"task edit":     {name: "id"},
	"task assign":   {name: "id"},
	"task rm":       {list: "tasks", name: "deleted", note: "With one id `deleted` and `ready`, the ids that wait for nothing else now; with several or a flag `tasks`, a list of those."},
	"task import":   {},

	"worktree ls":      {list: "worktrees", name: "member", reads: true, watch: true},
	"worktree status":  {list: "worktrees", name: "member", reads: true, watch: true},
	"worktree diff":    {list: "diffs", name: "member", reads: true},
	"worktree prepare": {list: "prepared", name: "member"},
	"worktree prune": {
		list: "worktrees", name: "member",
		note: "`status` is `removed`, `would_be_removed` (with `--dry-run`) or `kept`, with its `reason`.",
	},
	"merge":              {list: "merges", name: "id"},
	"merge queue":        {list: "merges", name: "id", reads: true},
	"merge cancel":       {list: "merges", name: "id", note: "`merges` are the [Merge](#merge)s that were taken back."},
	"pr":                 {list: "pullRequests", name: "member", note: "Of each `member` its `branch`, `into`, `title`, `body` and `bodyFile`, `commands` that would push and open it, and `warnings`."},
	"lease take":         {},
	"lease release":      {},
	"lease ls":           {list: "leases", name: "id", reads: true, watch: true},
	"checkpoint ls":      {list: "checkpoints", name: "ref", reads: true, watch: true},
	"checkpoint take":    {list: "checkpoints", name: "ref"},
	"checkpoint restore": {name: "ref"},
	"rescue ls":          {list: "rescues", name: "ref", reads: true, watch: true},
	"rescue show":        {reads: true},
	"rescue restore":     {name: "ref"},
	"rescue drop":        {list: "dropped", name: "ref"},

	"send":              {name: "message_id"},
	"broadcast":         {name: "message_id"},
	"inbox":             {list: "entries", name: "msg_id", reads: true, watch: true},
	"message ls":        {list: "messages", name: "id", reads: true, watch: true},
	"message show":      {name: "id", reads: true, watch: true},
	"message audit":     {reads: true, stream: true},
	"thread":            {list: "messages", name: "id", reads: true, watch: true},
	"approvals":         {list: "approvals", name: "id", reads: true, watch: true},
	"approvals ls":      {list: "approvals", name: "id", reads: true, watch: true},
	"approvals show":    {name: "id", reads: true, watch: true},
	"approvals approve": {name: "id"},
	"approvals reject":  {name: "id"},
	"approvals rules":   {reads: true},
	"ask plan":          {name: "id", note: "The [Approval](#approval) that was asked for."},
	"ask permission":    {name: "id", note: "The [Approval](#approval) that was asked for."},
	"respond":           {name: "message_id", note: "As of send: what was sent to the lead."},
	"notify ls":         {list: "sinks", name: itself, reads: true, watch: true},
	"notify add":        {list: "sinks", name: itself},
	"notify rm":         {list: "sinks", name: itself},
	"notify test":       {list: "told", name: itself},
	"hooks ls":          {list: "hooks", name: "hook", reads: true, watch: true},
	"hooks allow":       {list: "hooks", name: "hook"},
	"scratchpad get":    {reads: true, watch: true},
	"scratchpad merge":  {},
	"scratchpad watch":  {reads: true, stream: true},
	"run show":          {name: "id", reads: true, watch: true},
	"run list":          {list: "runs", name: "id", reads: true, watch: true},
	"run start":         {name: "id"},
	"run close":         {},

	"debug state":      {reads: true},
	"debug events":     {list: "recent", reads: true},
	"debug panes":      {list: "members", name: "name", reads: true},
	"debug goroutines": {reads: true},
	"debug record":     {name: "file"},
}

// keyOf returns the key of a command in shapes.
func keyOf(cmd *cobra.Command) string {
	path := strings.TrimPrefix(cmd.CommandPath(), "teamctl ")
	return cmp.Or(shortForm(path), path)
}

// outputFlags adds -o and --json to every command, and --watch where it applies.
func (a *app) outputFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.BoolVar(&a.out.json, "json", a.out.json, "write the result, or the error, as JSON; short for -o json")
	f.StringVarP((*string)(&a.out.format), "output", "o", "", "form of the result: wide, json, jsonl or name")
	a.complete(root, "output", words("wide\teverything, nothing cut", "json\tone document", "jsonl\tone element a line", "name\tone name or id a line"))
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		a.given = args
		if f := cmd.Flag("team"); f != nil && f.Changed && a.team == "" { // an empty name would mean the only team
			return usage(cmd, "--team needs the name of a team, not an empty one")
		}
		return a.out.setFormat(cmd, shapes[keyOf(cmd)])
	}
}

// setFormat resolves -o and --json for a command.
func (o *output) setFormat(cmd *cobra.Command, s shape) error {
	o.shape = s
	if cmd.Flags().Changed("json") && o.json && o.format != formatText && o.format != formatJSON && o.format != formatJSONL {
		return usage(cmd, "--json and -o %s do not go together", o.format)
	}
	if known := []format{formatText, formatWide, formatJSON, formatJSONL, formatName}; s.file && !slices.Contains(known, o.format) {
		o.file, o.format = string(o.format), formatText
	}
	switch o.format {
	case formatText, formatWide:
		if o.json {
			o.format = formatJSON
		}
	case formatJSON, formatJSONL:
		o.json = true
	case formatName:
		if s.name == "" {
			return usage(cmd, "the result of %s has no names: -o takes wide, json or jsonl", cmd.CommandPath())
		}
	default:
		given := string(o.format)
		o.format = formatText
		return usage(cmd, "-o takes wide, json, jsonl or name, not %q", given)
	}
	return nil
}

// wide reports whether -o wide was given.
func (o *output) wide() bool { return o.format == formatWide }

// value writes v in the requested format and reports whether it did; it writes nothing in a format
// for people.
func (o *output) value(v any) bool {
	switch o.format {
	case formatName, formatJSONL:
		list, err := o.elements(v)
		if err != nil {
			o.fail(team.Errorf(team.CodeInternal, "write the result: %w", err))
			return true
		}
		for _, e := range list {
			o.item(e)
		}
		return true
	case formatText, formatWide, formatJSON:
	}
	if o.json {
		o.encode(v, "  ")
	}
	return o.json
}

// item writes one element of a stream in the requested format and reports whether it did.
func (o *output) item(v any) bool {
	if o.format == formatName {
		if n := nameIn(v, o.shape.name); n != "" {
			o.text(printable(n) + "\n")
		}
		return true
	}
	if o.json {
		o.encode(v, "")
	}
	return o.json
}

// elements returns the elements of a document that -o jsonl and -o name write.
func (o *output) elements(v any) ([]any, error) {
	if o.shape.list == "" {
		return []any{v}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	raw, ok := doc[o.shape.list]
	if !ok { // a single element of the list, as of "settings NAME"
		return []any{v}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out, nil
}

// nameIn returns the name or id of an element, "" if it has none.
func nameIn(v any, key string) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	fields := map[string]json.RawMessage{itself: data}
	if key != itself && json.Unmarshal(data, &fields) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(fields[key], &text) == nil {
		return text
	}
	return string(fields[key])
}

// wantsJSON looks for --json and -o before the flags are parsed, for errors in the flags
// themselves.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	for i, arg := range args {
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			arg = "-o" + args[i+1]
		}
		switch arg {
		case "--json", "--json=true", "-ojson", "-ojsonl", "-o=json", "-o=jsonl", "--output=json", "--output=jsonl":
			return true
		}
	}
	return false
}
