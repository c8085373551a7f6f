package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teamctl/teamctl/team"
)

// usage is a mistake in the command line: exit status 2, and where help is.
func usage(cmd *cobra.Command, format string, args ...any) *team.Error {
	return team.Errorf(team.CodeInvalid, format, args...).WithReason("usage").
		WithHint(cmd.CommandPath() + " --help")
}

// withHelp says where help is when what was wrong with the input does not say more. What
// an operation refuses is told by call in its own words, as by every other door.
func withHelp(cmd *cobra.Command, err error) error {
	if team.CodeOf(err) != team.CodeInvalid || team.HintOf(err) != "" || cmd.Name() == "call" {
		return err
	}
	return team.Errorf(team.CodeInvalid, "%w", err).WithReason(team.ReasonOf(err)).WithHint(cmd.CommandPath() + " --help")
}

// takes checks the number of arguments; names say what they are.
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

// otherWords are what people who know other programs say for a verb: no slip of its
// name, and often near that of another one.
var otherWords = map[string][]string{
	"create": {"new", "init"}, "delete": {"rm", "remove", "destroy"}, "ps": {"status", "top"}, "spawn": {"add", "launch"},
	"logs": {"output", "tail"}, "board": {"dashboard", "ui"}, "approvals": {"approve", "reject"}, "inbox": {"mail", "read"}, "send": {"tell"},
	"settings": {"config", "set"},
	"task add": {"create", "new"}, "task rm": {"delete", "remove"}, "task show": {"get"}, "task complete": {"done", "finish", "close"},
	"member ls": {"ps", "status"}, "member spawn": {"add", "create", "new"},
	"team ls": {"show", "status"}, "team create": {"new", "add"}, "team delete": {"rm", "remove"},
	"lease take": {"add", "acquire", "lock"}, "lease release": {"rm", "drop", "unlock"}, "notify rm": {"remove", "delete"}, "rescue drop": {"rm", "delete"},
}

// unknownVerb refuses what is no verb of cmd, with the nearest one.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	said := ""
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
			verbs = append(verbs, c.Aliases...)
			if slices.Contains(otherWords[strings.TrimPrefix(c.CommandPath(), cmd.Root().Name()+" ")], strings.ToLower(args[0])) {
				said = c.Name()
			}
		}
	}
	err := usage(cmd, "unknown verb %q", args[0])
	if c := cmp.Or(said, team.Closest(args[0], verbs)); c != "" {
		err = err.WithHint("did you mean " + cmd.CommandPath() + " " + c + "?")
	}
	return err
}

// needsVerb is the RunE of a noun: without a verb it says which there are.
func needsVerb(cmd *cobra.Command, _ []string) error {
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return usage(cmd, "%s needs a verb: %s", cmd.CommandPath(), strings.Join(verbs, ", "))
}

// flagError makes usage errors of pflag's.
func flagError(cmd *cobra.Command, err error) error {
	var (
		none    *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &none):
		if said := cmd.Flags().Args(); len(said) > 0 && cmd.HasAvailableSubCommands() {
			return unknownVerb(cmd, said) // whose flag it would be
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
			e = e.WithHint("did you mean --" + c + "?")
		}
		return e
	case errors.As(err, &bare):
		return usage(cmd, "flag --%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		return usage(cmd, "--%s does not take %q: want a %s", invalid.GetFlag().Name, invalid.GetValue(), kindOf(invalid.GetFlag()))
	}
	return usage(cmd, "%v", err)
}

// kindOf says what a flag wants.
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

// newHelp is "teamctl help VERB...".
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [verb...]",
		Short: "Show the help of a verb",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if cmd == nil || err != nil || len(rest) > 0 {
				if cmd == nil {
					cmd = root
				}
				if len(rest) == 0 {
					rest = args
				}
				return unknownVerb(cmd, rest)
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var verbs []string
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					verbs = append(verbs, c.Name()+"\t"+c.Short)
				}
			}
			return verbs, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// newShim is there for --help only: main runs the shim before cobra is built.
func newShim(*app) *cobra.Command {
	return &cobra.Command{Use: "shim", Short: "Hold one agent (started by the supervisor)", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return usage(cmd, "shim must be the first argument") }}
}
