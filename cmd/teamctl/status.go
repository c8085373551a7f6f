package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// status is the current state of a person's work: what runs, what waits for them, and what to type
// next.
type status struct {
	Dir        string        `json:"dir"`
	Team       string        `json:"team,omitempty"`
	Repo       string        `json:"repo,omitempty"`
	Supervisor int           `json:"supervisorPid"`
	Teams      []string      `json:"teams"`   // all that exist
	Members    memberCounts  `json:"members"` // without the lead
	Tasks      ledger.Counts `json:"tasks"`
	Waiting    []waitingItem `json:"waiting"` // for the person
	Next       []string      `json:"next"`    // commands
}

// memberCounts are the members of a team in numbers.
type memberCounts struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Working int `json:"working"`
	Paused  int `json:"paused"`
	Stopped int `json:"stopped"`
	Failed  int `json:"failed"`
}

// waitingItem is one thing that a person is to look at, with the command that shows it.
type waitingItem struct {
	What    string `json:"what"`
	Command string `json:"command"`
}

// waitingShown is the maximum number of displayed items of one kind.
const waitingShown = 3

func newStatus(a *app) *cobra.Command {
	var line statusLine
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show where you are, what runs and what waits for you",
		Long: `Show the team that commands work on here, what its members and tasks do, what waits
for you, and what to type next. teamctl alone, in a terminal, shows the same.

With --format it is one line for prompts and status bars, "demo !4 ▸4 ·1 ✗1 5/12": four
things wait for you, four tasks are in work, one is ready, one has failed, five of twelve
are done. Counts of 0 are omitted, and no supervisor is started; a ? after the name says that the
team's has ended or does not answer, and what follows may be old. --follow writes the line again
whenever it changes; with --tmux it is the option @teamctl of the tmux server that you
are in, as long as the command runs: put #{@teamctl} into its status-right.`,
		Example: `  teamctl status
  teamctl status --watch
  teamctl status --format plain --all
  teamctl status --follow --tmux`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if line.asked(cmd) {
				return a.statusLine(cmd, line)
			}
			s, err := a.statusNow(cmd.Context())
			if err == nil && !a.out.value(s) {
				a.showStatus(s)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&line.format, "format", "", "one line: plain, tmux (escaped for its status line) or json")
	f.BoolVar(&line.all, "all", false, "one line about all teams")
	f.BoolVar(&line.follow, "follow", false, "one line, again whenever it changes, until interrupted")
	f.BoolVar(&line.tmux, "tmux", false, "with --follow: set @teamctl of the tmux server that you are in")
	a.complete(cmd, "format", words("plain", "tmux", "json"))
	return cmd
}

// atTerminal reports whether a person looks at what is written, and types.
func (a *app) atTerminal() bool {
	in, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && a.out.screen != nil && !a.out.json
}

// welcome is teamctl without a command.
func (a *app) welcome(ctx context.Context) error {
	s, err := a.statusNow(ctx)
	if err != nil {
		return err
	}
	_, rows := a.out.size()
	a.showStatus(within(s, rows))
	a.out.line("\nteamctl --help lists the commands of a day.")
	return nil
}

// within shortens the list of what waits for the person, so that the rest of a status stays within
// a terminal with rows lines.
func within(s status, rows int) status {
	// Around the two lines of each: three of the team, a blank line and a title twice, the
	// line about the help after a blank one, and the next prompt.
	room := (rows - 10 - len(s.Next)) / 2
	if n := len(s.Waiting); n > room {
		kept := max(1, room-1)
		if kept < n {
			s.Waiting = append(slices.Clone(s.Waiting[:kept]), waitingItem{fmt.Sprintf("and %d more", n-kept), "teamctl status"})
		}
	}
	return s
}

// statusNow reads everything. That there is no team, or more than one to choose from, is
// a status too.
func (a *app) statusNow(ctx context.Context) (status, error) {
	s := status{Teams: []string{}, Waiting: []waitingItem{}, Next: []string{}}
	env, err := a.tools()
	if err != nil {
		return s, err
	}
	s.Dir = env.Dir
	if s.Teams, err = env.Keys(); err != nil {
		return s, err
	}
	key, err := a.key(ctx, env)
	switch {
	case err == nil:
	case team.ReasonOf(err) == "team_ambiguous":
		for _, k := range s.Teams {
			s.Next = append(s.Next, "teamctl status --team "+k)
		}
		return s, nil
	case len(s.Teams) == 0 && a.team == "":
		s.Next = []string{newTeamCommand(s.Dir)}
		return s, nil
	default:
		return s, err
	}
	return s, a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		s.Team = key
		row, err := t.Ledger.Team(ctx)
		if err != nil {
			return err
		}
		s.Repo = row.Repo
		members, sup, err := t.Members(ctx)
		if err != nil {
			return err
		}
		s.Supervisor = sup
		if s.Tasks, err = t.Ledger.Counts(ctx); err != nil {
			return err
		}
		var startable []string
		for _, m := range members {
			if m.Name == team.LeadName {
				continue
			}
			s.Members.add(m)
			if m.Observed.Terminal() {
				startable = append(startable, m.Name)
			}
		}
		if s.Waiting, err = a.waiting(ctx, t, c); err != nil {
			return err
		}
		s.Next = a.next(s, startable)
		return nil
	})
}

// newTeamCommand creates a team for the repository in a directory, if it is one.
func newTeamCommand(dir string) string {
	for at := dir; at != "" && at != filepath.Dir(at); at = filepath.Dir(at) {
		if is, err := tool.IsRepository(at); is || err != nil {
			name, err := team.TeamKey(filepath.Base(at))
			if err != nil {
				name = "demo"
			}
			return "teamctl create " + name + " --repo ."
		}
	}
	return "teamctl create demo"
}

func (c *memberCounts) add(m ledger.Member) {
	c.Total++
	switch {
	case m.Observed == team.Running:
		c.Running++
		if look.Paused(m) {
			c.Paused++
		} else if m.Activity == team.Working {
			c.Working++
		}
	case m.Observed == team.Failed:
		c.Failed++
	case m.Observed.Terminal():
		c.Stopped++
	}
}

// waiting returns what needs a person: requests in the team, and mail.
func (a *app) waiting(ctx context.Context, t *tool.Team, c tool.Caller) ([]waitingItem, error) {
	list := []waitingItem{}
	needs, err := look.Needs(ctx, t)
	if err != nil {
		return nil, err
	}
	shown := map[view.NeedKind]int{}
	for _, n := range view.Waiting(needs) {
		switch shown[n.Kind]++; {
		case shown[n.Kind] <= waitingShown:
			list = append(list, waitingItem{said(n), n.Command})
		case shown[n.Kind] == waitingShown+1:
			list = append(list, waitingItem{"and more", allOf(n)})
		}
	}
	if n := len(view.Off(needs)); n > 0 {
		list = append(list, waitingItem{fmt.Sprintf("%d put off", n), "teamctl ui --view needs"})
	}
	mail, err := t.Inbox(ctx, c.Name, true)
	if err != nil {
		return nil, err
	}
	if n := forPeople(mail.Entries); n > 0 {
		list = append(list, waitingItem{plural(n, "unread message"), "teamctl inbox --unread"})
	}
	return list, nil
}

// said is a need in one line.
func said(n view.Need) string {
	text := view.Clean(n.Text)
	switch {
	case n.Approval != 0:
		return fmt.Sprintf("%s of %s: %s", n.Kind, n.Member, text)
	case n.Kind == view.NeedDialog:
		return fmt.Sprintf("%s asks at its own screen: %s", n.Member, text)
	case n.Kind == view.NeedMember:
		return fmt.Sprintf("%s failed: %s", n.Member, text)
	case n.Kind == view.NeedTask && n.Task != "":
		return fmt.Sprintf("task %s failed: %s", n.Task, text)
	case n.Kind == view.NeedStalled:
		return n.Member + " " + text
	}
	return text
}

// allOf is the command that lists everything of a kind of needs.
func allOf(n view.Need) string {
	switch {
	case n.Approval != 0:
		return "teamctl approvals"
	case n.Kind == view.NeedTask:
		return "teamctl task ls --status failed"
	}
	return "teamctl ps"
}

// next are the commands that lead on from here.
func (a *app) next(s status, startable []string) []string {
	var next []string
	add := func(command string) { next = append(next, command) }
	open := s.Tasks.Total() - s.Tasks.Completed - s.Tasks.Failed
	switch {
	case s.Members.Total == 0:
		add("teamctl spawn builder")
	case s.Members.Running == 0 && len(startable) > 0:
		add("teamctl start " + strings.Join(startable, " "))
	}
	switch {
	case s.Tasks.Total() == 0:
		add(`teamctl task add "say hello" --run 'echo hello'`)
	case open > s.Tasks.Stuck && s.Members.Running > 0:
		add("teamctl wait --progress")
		add("teamctl board")
	case open > s.Tasks.Stuck:
	case s.Tasks.Failed > 0:
		add("teamctl task retry --failed")
	default:
		if s.Repo != "" {
			add("teamctl worktree diff")
			add("teamctl merge --ready")
		}
		if s.Members.Running > 0 {
			add("teamctl shutdown")
		}
	}
	if a.team != "" {
		for i := range next {
			next[i] += " --team " + s.Team
		}
	}
	return next
}

func (a *app) showStatus(s status) {
	o := a.out
	switch {
	case s.Team == "" && len(s.Teams) == 0:
		o.line("You are in %s. There is no team yet.", view.Clean(s.Dir))
	case s.Team == "":
		o.line("You are in %s. There are %d teams: %s.", view.Clean(s.Dir), len(s.Teams), strings.Join(s.Teams, ", "))
	default:
		where := "no repository"
		if s.Repo != "" {
			where = view.Clean(s.Repo)
		}
		o.line("team     %s, %s", s.Team, where)
		o.line("members  %s", s.Members)
		o.line("tasks    %s", taskCounts(s.Tasks))
		if len(s.Waiting) > 0 {
			o.line("\nWaits for you:")
		}
		for _, w := range s.Waiting {
			o.line("  %s\n      %s", view.Cut(w.What, helpWidth-4), o.style.Dim(w.Command))
		}
	}
	if len(s.Next) > 0 {
		o.line("\nNext:")
	}
	for _, n := range s.Next {
		o.line("  %s", n)
	}
}

// String returns the counts in words, without those that are 0.
func (c memberCounts) String() string {
	if c.Total == 0 {
		return "none"
	}
	return counted(c.Total, []part{
		{c.Running, "running"}, {c.Working, "working"}, {c.Paused, "paused"}, {c.Stopped, "stopped"}, {c.Failed, "failed"},
	})
}

func taskCounts(c ledger.Counts) string {
	if c.Total() == 0 {
		return "none"
	}
	return counted(c.Total(), []part{
		{c.Completed, "completed"}, {c.InProgress + c.Claimed, "in progress"}, {c.Ready, "ready"},
		{c.Pending - c.Ready - c.Stuck, "not ready yet"}, {c.Stuck, "stuck behind a failed one"}, {c.Failed, "failed"},
	})
}

type part struct {
	n    int
	name string
}

func counted(total int, parts []part) string {
	var words []string
	for _, p := range parts {
		if p.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	if len(words) == 0 {
		return fmt.Sprint(total)
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(words, ", "))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// forPeople counts the mail that a person must read: idle notices repeat what ps shows.
func forPeople(entries []tool.InboxEntry) int {
	n := 0
	for _, e := range entries {
		if e.Kind != string(team.KindIdle) {
			n++
		}
	}
	return n
}
