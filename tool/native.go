package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/team"
)

// NativeTeam is a directory among the teams that holds a native team of Claude Code: a config.json
// and mailboxes written by that program, and nothing of teamctl's. Somebody has copied it there.
type NativeTeam struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Members int    `json:"members"`
	Unread  int    `json:"unread"` // messages in its mailboxes
	Bridge  string `json:"bridge"` // commands that bridge it to a team of teamctl
}

// String describes the team.
func (n NativeTeam) String() string {
	text := fmt.Sprintf("%s is a team of Claude Code's own, without a ledger of teamctl; members: %d", n.Path, n.Members)
	if n.Unread > 0 {
		text += fmt.Sprintf(", unread messages: %d", n.Unread)
	}
	return text
}

// NativeTeams lists the native teams among the teams, by name.
func (e *Env) NativeTeams() []NativeTeam {
	dirs, err := os.ReadDir(e.Home.TeamsDir())
	if err != nil {
		return nil // Teams reports it
	}
	var out []NativeTeam
	for _, d := range dirs {
		if n, ok := e.nativeTeam(d.Name()); ok {
			out = append(out, n)
		}
	}
	return out
}

func (e *Env) nativeTeam(name string) (NativeTeam, bool) {
	l := e.Home.Team(name)
	for _, ours := range []string{l.Ledger(), l.Locks(), l.Members(), l.SupervisorLock()} {
		if _, err := os.Lstat(ours); err == nil {
			return NativeTeam{}, false
		}
	}
	fi, err := os.Lstat(l.Config())
	if err != nil || !fi.Mode().IsRegular() {
		return NativeTeam{}, false
	}
	cfg, err := team.ReadConfig(l.Config())
	if err != nil || cfg.LeadAgentID == "" {
		return NativeTeam{}, false
	}
	return NativeTeam{Name: name, Path: l.Dir, Members: len(cfg.Members), Unread: unreadIn(l), Bridge: e.bridgeTo(name)}, true
}

// unreadIn counts the unread messages in the mailboxes of a directory. An unreadable mailbox
// counts as one message, since it may hold one.
func unreadIn(l team.Layout) int {
	files, err := filepath.Glob(filepath.Join(glob.Escape(l.Inboxes()), "*.json"))
	if err != nil {
		return 0 // the pattern is valid
	}
	n := 0
	for _, f := range files {
		box, err := inbox.Open(l.Inboxes(), l.Locks(), strings.TrimSuffix(filepath.Base(f), ".json"))
		if err != nil {
			n++
			continue
		}
		entries, err := box.Look()
		if err != nil {
			n++
		}
		for _, e := range entries {
			if !e.Read {
				n++
			}
		}
	}
	return n
}

// bridgeTo returns the commands that bridge a new team to a native one: to the original, in which
// its lead works, if it exists, else to the copy.
func (e *Env) bridgeTo(name string) string {
	key := e.freeKey(name)
	command := "teamctl create " + key + " && teamctl bridge claude --team " + key + " --native " + name
	config := os.Getenv("CLAUDE_CONFIG_DIR")
	if config == "" {
		if home, err := os.UserHomeDir(); err == nil {
			config = filepath.Join(home, ".claude")
		}
	}
	if _, err := os.Stat(filepath.Join(config, "teams", name, "config.json")); config == "" || err != nil {
		command += " --config-dir " + team.ShellQuote(e.Home.Dir)
	}
	return command
}

// isNative returns the error for a command that names a native team, nil otherwise.
func (e *Env) isNative(code team.Code, key string) error {
	n, ok := e.nativeTeam(key)
	if !ok {
		return nil
	}
	return team.Errorf(code, "%s", n).WithReason(team.ReasonNativeTeam).WithHint(n.Bridge)
}

// onlyNative is isNative for a command that names no team, if all teams are native ones.
func (e *Env) onlyNative() error {
	all := e.NativeTeams()
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = n.String()
	}
	slices.Sort(texts)
	return team.Errorf(team.CodeNotFound, "there is no team yet; %s", strings.Join(texts, "; ")).WithReason(team.ReasonTeamNotFound).
		WithHint(all[0].Bridge)
}
