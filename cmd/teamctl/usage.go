package main

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teamctl/teamctl/team"
)

// usage is an error in the command line: exit status 2, with a pointer to the help.
func usage(cmd *cobra.Command, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeInvalid, format, args...).WithReason(team.ReasonUsage).
		WithHint(cmd.CommandPath() + " --help")
}

// withHelp adds a pointer to the help to an error that does not say more. Errors of an operation
// keep their own words, as at every other door.
func withHelp(cmd *cobra.Command, err error) error {
	if team.CodeOf(err) != team.CodeInvalid || team.HintOf(err) != "" || cmd.Name() == "call" {
		return err
	}
	return team.Errorf(team.CodeInvalid, "%w", err).WithReason(team.ReasonOf(err)).WithHint(cmd.CommandPath() + " --help")
}

// takes checks the number of arguments; names describes them.
func takes(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s needs %s", cmd.CommandPath(), names)
		case most == 0 && len(args) > 0:
			return usage(cmd, "%s takes no argument, found %q", cmd.CommandPath(), args[0])
		case most >= 0 && len(args) > most:
			return usage(cmd, "%s takes %s only, found %q too", cmd.CommandPath(), names, args[most])
		}
		return nil
	}
}

// otherWords are what users of other programs, or of an older teamctl, type for a command. They
// are not misspellings, and often resemble another command.
var otherWords = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"create": {"new", "init", "team new", "team add"}, "delete": {"rm", "remove", "destroy", "team rm", "team remove"},
		"ls": {"list", "team list"}, "ps": {"top", "members", "member list", "member ps", "member status"},
		"status": {"info", "st"}, "spawn": {"add", "launch", "member add", "member create", "member new"},
		"logs": {"output", "tail"}, "board": {"dashboard", "watch"}, "inbox": {"mail", "read"}, "send": {"tell", "msg"},
		"approvals approve": {"approve", "allow", "yes"}, "approvals reject": {"reject", "deny", "no"}, "approvals ls": {"approval", "approvals list"},
		"settings": {"config", "set"}, "stop": {"halt", "quit"}, "shutdown": {"exit"}, "attach": {"enter", "join-session"},
		"task add": {"task create", "task new"}, "task rm": {"task delete", "task remove"}, "task show": {"task get", "task view"},
		"task complete": {"task done", "task finish", "task close", "done", "complete"}, "task edit": {"task set", "task change", "edit"},
		"task ls": {"tasks", "task list"}, "task cancel": {"task stop", "task abort", "task kill", "cancel"}, "task claim": {"claim", "task take", "task start"},
		"task retry": {"retry", "task rerun", "task reset"}, "task assign": {"assign"}, "task release": {"release", "task unclaim"},
		"task history": {"task log"}, "task fail": {"fail"},
		"team ls": {"team show"}, "worktree diff": {"diff", "changes"}, "worktree ls": {"worktrees"},
		"lease take": {"lease add", "lease acquire", "lease lock"}, "lease release": {"lease rm", "lease drop", "lease unlock"},
		"notify rm": {"notify remove", "notify delete"}, "rescue drop": {"rescue rm", "rescue delete"}, "message ls": {"messages"},
		"pane hide": {"hide", "member hide"}, "pane unhide": {"unhide", "member unhide", "pane show"},
		"doctor": {"check", "fix", "repair"}, "events": {"event", "history", "log"}, "run list": {"runs"}, "run start": {"run new", "run begin"},
		"usage budget": {"budget"}, "approvals rules": {"permissions", "rules"}, "memory ls": {"memories"},
	}
})

// slip is a mistake in a word of the command line for which the intended word is known.
type slip struct {
	err   *team.Error
	wrong string   // as typed
	right string   // the replacement: a flag, or all words from the program's name on
	path  []string // the words of the command before wrong; nil if it is a flag
}

func (s *slip) Error() string { return s.err.Error() }
func (s *slip) Unwrap() error { return s.err }

// unknownVerb rejects an unknown verb of cmd and suggests the nearest one.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usage(cmd, "unknown verb %q", args[0])
	path := strings.TrimPrefix(cmd.CommandPath()+" "+strings.ToLower(args[0]), cmd.Root().Name()+" ")
	for right, words := range otherWords() {
		if slices.Contains(words, path) {
			return &slip{err, args[0], cmd.Root().Name() + " " + right, pathWords(cmd)}
		}
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
			verbs = append(verbs, c.Aliases...)
		}
	}
	if near := team.Closest(args[0], verbs); near != "" {
		return &slip{err, args[0], cmd.CommandPath() + " " + near, pathWords(cmd)}
	}
	return err
}

// pathWords returns the words by which a command and its parents can be called.
func pathWords(cmd *cobra.Command) []string {
	words := []string{}
	for ; cmd != nil; cmd = cmd.Parent() {
		words = append(append(words, cmd.Name()), cmd.Aliases...)
	}
	return words
}

// mended returns the command line with the slip corrected, so that the hint can be pasted.
func (s *slip) mended(args []string) string {
	i := slices.Index(args, s.wrong)
	if s.path == nil {
		i = slices.IndexFunc(args, func(w string) bool { return w == s.wrong || strings.HasPrefix(w, s.wrong+"=") })
	}
	if i < 0 {
		return s.right
	}
	if s.path == nil {
		args = slices.Clone(args)
		args[i] = s.right + strings.TrimPrefix(args[i], s.wrong)
		return "teamctl " + team.ShellLine(args)
	}
	line := s.right
	rest := slices.DeleteFunc(slices.Clone(args[:i]), func(w string) bool { return slices.Contains(s.path, w) })
	rest = append(rest, args[i+1:]...)
	if len(rest) > 0 {
		line += " " + team.ShellLine(rest)
	}
	return line
}

// needsVerb is the RunE of a noun: without a verb it lists the verbs.
func needsVerb(cmd *cobra.Command, _ []string) error {
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return usage(cmd, "%s needs a verb: %s", cmd.CommandPath(), strings.Join(verbs, ", "))
}

// flagError turns pflag's errors into usage errors.
func flagError(cmd *cobra.Command, err error) error {
	var (
		none    *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &none):
		if said := cmd.Flags().Args(); len(said) > 0 && cmd.HasAvailableSubCommands() {
			return unknownVerb(cmd, said) // the command that the flag belongs to
		}
		name := none.GetSpecifiedName()
		dashed := "--" + name
		if none.GetSpecifiedShortnames() != "" {
			dashed = "-" + name
		}
		e := usage(cmd, "unknown flag %s", dashed)
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				flags = append(flags, f.Name)
			}
		})
		if c := team.Closest(name, flags); c != "" && len(name) > 1 {
			return &slip{err: e, wrong: dashed, right: "--" + c}
		}
		return e
	case errors.As(err, &bare):
		return usage(cmd, "flag --%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		return usage(cmd, "--%s does not take %q: want a %s", invalid.GetFlag().Name, invalid.GetValue(), kindOf(invalid.GetFlag()))
	}
	return usage(cmd, "%v", err)
}

// tookDash returns a flag that was given without its value, so that it took the -- before the arguments
// of another program, or nil.
func tookDash(cmd *cobra.Command) (took *pflag.Flag) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		list, many := f.Value.(pflag.SliceValue)
		if f.Value.String() == "--" || many && slices.Contains(list.GetSlice(), "--") {
			took = f
		}
	})
	return took
}

// kindOf describes the value of a flag.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "whole number"
	case "duration":
		return "duration such as 90s or 20m"
	case "bool":
		return "truth value"
	}
	return f.Value.Type()
}

// newShim exists for --help only: main runs the shim before cobra is set up.
func newShim(*app) *cobra.Command {
	return &cobra.Command{Use: "shim", Short: "Hold one agent (started by the supervisor)", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return usage(cmd, "shim must be the first argument") }}
}
