package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newService(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "service VERB",
		Short:   "Keep a team's supervisor up across logins and reboots",
		Example: "  teamctl service install --user --print\n  teamctl service uninstall",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(newServiceInstall(a), newServiceUninstall(a))
	return cmd
}

func newServiceInstall(a *app) *cobra.Command {
	var user, show, replace bool
	cmd := &cobra.Command{
		Use:   "install --user",
		Short: "Install a unit for systemd or launchd",
		Long: `Write a unit that keeps the team's supervisor up and brings lost members back
after a reboot (launchd: those whose restart policy is not never). It is your own
user's, nothing needs root, and nothing is switched on: the commands for that are
printed (lingering has it up from the boot on, and after you have logged out). It has
the PATH of now, by which the agents' programs are found. Its kill mode lets the
agents live when the supervisor is stopped or updated.`,
		Example: "  teamctl service install --user --print\n  teamctl service install --user",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !user {
				return usage(cmd, "only services of your own user are supported: add --user")
			}
			s, err := a.service(cmd)
			if err != nil {
				return err
			}
			if !show {
				if err := tool.InstallService(s, replace); err != nil {
					return err
				}
			}
			if a.out.value(s) {
				return nil
			}
			if show {
				a.out.text(s.Text)
				return nil
			}
			a.out.line("wrote %s", s.Path)
			for _, c := range s.Enable {
				a.out.hint("%s", c)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&user, "user", false, "a service of your own user")
	f.BoolVar(&show, "print", false, "print the unit and write nothing")
	f.BoolVar(&replace, "replace", false, "replace an existing unit that differs")
	return cmd
}

func newServiceUninstall(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove the unit; disable it first",
		Example: "  teamctl service uninstall\n  teamctl service uninstall --team demo",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.service(cmd)
			if err != nil {
				return err
			}
			out := removedService{Service: s, Outcome: "removed"}
			switch err := os.Remove(s.Path); {
			case os.IsNotExist(err):
				out.Outcome = "already_removed"
			case err != nil:
				return team.Errorf(team.CodeUnavailable, "remove the unit: %w", err)
			}
			if a.out.value(out) {
				return nil
			}
			if out.Outcome == "already_removed" {
				a.out.line("nothing to remove: there is no unit %s", s.Path)
				return nil
			}
			a.out.line("removed %s", s.Path)
			for _, c := range s.Disable {
				a.out.hint("%s", c)
			}
			return nil
		},
	}
}

// service returns the unit of the team that the flags name.
func (a *app) service(cmd *cobra.Command) (s tool.Service, err error) {
	exe, err := executable()
	if err != nil {
		return s, err
	}
	err = a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
		s, err = tool.ServiceOf(t.Layout, exe, "")
		return err
	})
	return s, err
}
