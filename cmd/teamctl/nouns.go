package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
)

// longForm is a verb below its noun that also has a short form. One function makes both.
type longForm struct {
	verb  string // below the noun
	short string // below teamctl
	make  func(*app) *cobra.Command
}

// noun is a group of verbs. A noun that is also a command (task, message) gets the long forms in
// addition to its own verbs.
type noun struct {
	name, group, short, example string
	forms                       []longForm
}

// nouns has the long forms of the daily verbs.
var nouns = []noun{
	{
		name: "team", group: groupTeam, short: "Manage teams: create, ls, delete, up, down and more",
		example: "  teamctl team create demo --repo .\n  teamctl team ls",
		forms: []longForm{
			{"create", "create", newCreate}, {"ls", "ls", newLs}, {"delete", "delete", newDelete}, {"up", "up", newUp}, {"down", "down", newDown},
			{"status", "status", newStatus}, {"wait", "wait", newWait}, {"board", "board", newBoard}, {"settings", "settings", newSettings}, {"events", "events", newEvents},
			{"relocate", "relocate", newRelocate},
		},
	},
	{
		name: "member", group: groupMember,
		forms: []longForm{
			{"spawn", "spawn", newSpawn}, {"ls", "ps", newPs}, {"join", "join", newJoin}, {"leave", "leave", newLeave},
			{"shutdown", "shutdown", newShutdown}, {"stop", "stop", newStop}, {"start", "start", newStart}, {"restart", "restart", newRestart},
			{"mode", "mode", newMode}, {"role", "role", newRole}, {"rename", "rename", newRename}, {"pause", "pause", newPause}, {"resume", "resume", newResume}, {"recover", "recover", newRecover}, {"kill", "kill", newKill},
			{"attach", "attach", newAttach}, {"logs", "logs", newLogs}, {"capture", "capture", newCapture},
			{"explain", "explain", newExplain}, {"interrupt", "interrupt", newInterrupt},
		},
	},
	{
		name: "message", group: groupTalk,
		forms: []longForm{
			{"send", "send", newSend}, {"broadcast", "broadcast", newBroadcast}, {"inbox", "inbox", newInbox}, {"thread", "thread", newThread},
		},
	},
}

// addNouns adds the long forms to root, which has the short ones, and names in the help of each
// the other. The verbs are created only if the command line may refer to them, since every command
// would pay for it.
func (a *app) addNouns(root *cobra.Command, args []string) {
	all := len(args) == 0 || aboutAll(args)
	top := make(map[string]*cobra.Command, len(root.Commands()))
	for _, c := range root.Commands() {
		top[c.Name()] = c
	}
	for _, n := range nouns {
		parent := top[n.name]
		if parent == nil {
			parent = &cobra.Command{Use: n.name + " VERB", Short: n.short, Example: n.example, Args: unknownVerb, RunE: needsVerb, GroupID: n.group}
			root.AddCommand(parent)
		}
		if !all {
			continue
		}
		for _, f := range n.forms {
			c := f.make(a)
			c.Use = f.verb + strings.TrimPrefix(c.Use, c.Name())
			c.Aliases = nil
			parent.AddCommand(c)
			c.Long = cmp.Or(c.Long, c.Short+".") + "\n\nThe short form is teamctl " + f.short + "."
			if s := top[f.short]; s != nil {
				s.Long = cmp.Or(s.Long, s.Short+".") + "\n\nThe long form is teamctl " + n.name + " " + f.verb + "."
			}
		}
	}
}

// shortForm returns the short form of a command's path, or "" if it has none.
func shortForm(path string) string {
	name, verb, _ := strings.Cut(path, " ")
	for _, n := range nouns {
		if n.name != name {
			continue
		}
		for _, f := range n.forms {
			if f.verb == verb {
				return f.short
			}
		}
	}
	return ""
}
