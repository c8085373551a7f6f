package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// verb is a top-level command. Its name is here so that a command line pays for creating one
// command, not all.
type verb struct {
	name string
	make func(*app) *cobra.Command
}

// verbs lists the commands by their group in the help. Commands that are not for people have no
// group.
var verbs = []struct {
	group string
	all   []verb
}{
	{groupTeam, []verb{
		{"create", newCreate}, {"ls", newLs}, {"status", newStatus}, {"settings", newSettings}, {"up", newUp}, {"down", newDown},
		{"delete", newDelete}, {"wait", newWait}, {"ui", newUI}, {"web", newWeb}, {"board", newBoard}, {"graph", newGraph}, {"timeline", newTimeline}, {"report", newReport}, {"events", newEvents}, {"show", newShow}, {"run", newRun},
		{"usage", newUsage}, {"prune", newPrune},
	}},
	{groupMember, []verb{
		{"member", newMember}, {"spawn", newSpawn}, {"join", newJoin}, {"leave", newLeave}, {"ps", newPs}, {"shutdown", newShutdown},
		{"stop", newStop}, {"start", newStart}, {"restart", newRestart}, {"pause", newPause}, {"resume", newResume},
		{"mode", newMode}, {"role", newRole}, {"rename", newRename}, {"recover", newRecover}, {"kill", newKill}, {"interrupt", newInterrupt},
		{"explain", newExplain}, {"attach", newAttach}, {"logs", newLogs}, {"capture", newCapture}, {"pane", newPane}, {"edge", newEdge},
	}},
	{groupTask, []verb{
		{"task", newTask},
	}},
	{groupTree, []verb{
		{"worktree", newWorktree}, {"review", newReview}, {"merge", newMerge}, {"pr", newPR}, {"lease", newLease}, {"checkpoint", newCheckpoint},
		{"rescue", newRescue},
	}},
	{groupTalk, []verb{
		{"send", newSend}, {"broadcast", newBroadcast}, {"inbox", newInbox}, {"message", newMessage}, {"thread", newThread},
		{"chat", newChat}, {"session", newSession}, {"approvals", newApprovals}, {"ask", newAsk}, {"respond", newRespond}, {"notify", newNotify}, {"hooks", newHooks},
		{"scratchpad", newScratchpad},
	}},
	{groupMore, []verb{
		{"doctor", newDoctor}, {"ledger", newLedger}, {"relocate", newRelocate}, {"version", newVersion}, {"agents", newAgents}, {"models", newModels}, {"memory", newMemory}, {"mcp", newMCP}, {"call", newCall},
		{"service", newService}, {"debug", newDebug}, {"bridge", newBridge}, {"docs", newDocs},
	}},
	{"", []verb{
		{"worker", newWorker}, {"llm", newLLM}, {"supervise", newSupervise}, {"shim", newShim}, {"beside", newBeside}, {"trusted", newTrusted}, {"acp", newACP},
		{"hook", newHook},
	}},
}

// briefVerbs are the commands that start often and mostly read the ledger. They stay on the one
// processor that the program starts on: database/sql starts a goroutine for each query, and with a
// second processor the runtime wakes a thread for each goroutine. Commands that serve, draw a
// screen, write at once or work in parallel are not among them.
var briefVerbs = []string{
	"approvals", "events", "explain", "hook", "inbox", "ls", "ps", "settings", "show", "status", "thread", "usage", "version", "wait",
}

// brief reports whether a command line names a brief verb.
func brief(args []string) bool { return len(args) > 0 && slices.Contains(briefVerbs, args[0]) }

// only returns the one verb that the command line can refer to, or "" if it may need more than
// one: it asks for help or completion, starts with a flag, or has a word that stands for several.
func only(args []string) string {
	if len(args) == 0 || aboutAll(args) {
		return ""
	}
	for _, g := range verbs {
		if slices.ContainsFunc(g.all, func(v verb) bool { return v.name == args[0] }) {
			return args[0]
		}
	}
	return ""
}

// aboutAll reports whether a command line may refer to the long forms of verbs, or to all
// commands.
func aboutAll(args []string) bool {
	return slices.ContainsFunc(args, func(s string) bool {
		return s == "-h" || s == "--help" || s == "help" || s == "docs" || strings.HasPrefix(s, cobra.ShellCompRequestCmd) ||
			slices.ContainsFunc(nouns, func(n noun) bool { return n.name == s })
	})
}
