package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/teamfile"
)

func newApprovalRules(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "rules [-f FILE]",
		Short: "Show or replace the rules that answer requests",
		Long: `Show the rules by which the team answers permission requests itself, or replace them
with those under permissions in a team file. Deny rules come first; a request that no
rule matches waits for a person. Rules never answer plans or requests that come by
mail. Only a person may change them.`,
		Example: "  teamctl approvals rules\n  teamctl approvals rules -f teamctl.yaml",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var f *teamfile.File
			if file != "" {
				var err error
				if f, err = teamfile.Read(file); err != nil {
					return err
				}
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if f != nil {
					if err := t.SetPermissions(cmd.Context(), c, f.Permissions); err != nil {
						return err
					}
				}
				p, err := t.Permissions(cmd.Context())
				if err != nil || a.out.value(p) {
					return err
				}
				a.showRules(p)
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "use the permissions of this team file")
	return cmd
}

func (a *app) showRules(p team.Permissions) {
	if p.None() {
		a.out.note("there are no rules: every permission request waits for a person")
		return
	}
	rows := append(ruleRows("deny", p.Deny), ruleRows("allow", p.Allow)...)
	a.out.table([]string{"ANSWER", "TOOL", "COMMAND", "PATH", "MEMBERS"}, rows, false)
}

func ruleRows(word string, list []team.PermissionRule) (rows [][]string) {
	for _, r := range list {
		members := strings.Join(r.Members, " ")
		if members == "" {
			members = "all"
		}
		rows = append(rows, []string{word, view.Clean(r.Tool), dash(view.Clean(r.Command)), dash(view.Clean(r.Path)), view.Clean(members)})
	}
	return rows
}
