package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/specfile"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// specFlags are the flags that describe an agent spec.
type specFlags struct {
	file, name, description, model, prompt string
	allow, deny, allowSkills, denySkills   []string
}

func (f *specFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.file, "file", "", "read the spec from a file (agent.toml, or JSON; - is standard input)")
	fs.StringVar(&f.description, "description", "", "what the agent is for")
	fs.StringVar(&f.model, "model", "", "its model, PROVIDER/MODEL")
	fs.StringVar(&f.prompt, "system-prompt", "", "its instructions")
	fs.StringSliceVar(&f.allow, "allow", nil, "tools that it has, no other; * is any text")
	fs.StringSliceVar(&f.deny, "deny", nil, "tools that it does not have")
	fs.StringSliceVar(&f.allowSkills, "allow-skills", nil, "skills that it has, no other")
	fs.StringSliceVar(&f.denySkills, "deny-skills", nil, "skills to withhold from it")
}

// patch returns the flags as a patch of a spec.
func (f *specFlags) patch(cmd *cobra.Command) (map[string]any, error) {
	out := map[string]any{}
	sub := func(m map[string]any, name string) map[string]any {
		if m[name] == nil {
			m[name] = map[string]any{}
		}
		return m[name].(map[string]any)
	}
	set := func(flag string, to map[string]any, key string, v any) {
		if cmd.Flags().Changed(flag) {
			to[key] = v
		}
	}
	set("name", out, "name", f.name)
	set("description", out, "description", f.description)
	if cmd.Flags().Changed("model") {
		ref, err := model.ParseRef(f.model)
		if err != nil {
			return nil, err
		}
		m := sub(sub(out, "defaults"), "model")
		m["provider"], m["model"] = ref.Provider, ref.Model
	}
	if cmd.Flags().Changed("system-prompt") {
		sub(out, "defaults")["system_prompt"] = f.prompt
	}
	for _, l := range []struct {
		flag, what, key string
		list            []string
	}{{"allow", "tools", "allow", f.allow}, {"deny", "tools", "deny", f.deny}, {"allow-skills", "skills", "allow", f.allowSkills}, {"deny-skills", "skills", "deny", f.denySkills}} {
		if cmd.Flags().Changed(l.flag) {
			if l.list == nil {
				l.list = []string{}
			}
			sub(sub(out, "policy"), l.what)[l.key] = l.list
		}
	}
	return out, nil
}

// fromFile reads the specs of a file: TOML, or JSON with one spec or a list.
func (a *app) fromFile(file string) ([]team.AgentSpec, error) {
	if file != "-" && !strings.HasSuffix(file, ".json") {
		s, err := specfile.Read(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil, team.Errorf(team.CodeNotFound, "%s is not there", file).WithReason(team.ReasonFileMissing)
		}
		return []team.AgentSpec{s}, err
	}
	var text string
	var err error
	if file == "-" {
		text, err = a.message([]string{"-"})
	} else {
		var b []byte
		b, err = regular.ReadFile(file)
		text = string(b)
	}
	if err != nil {
		return nil, err
	}
	if t := strings.TrimSpace(text); !strings.HasPrefix(t, "{") && !strings.HasPrefix(t, "[") {
		s, err := specfile.Decode(file, []byte(text))
		return []team.AgentSpec{s}, err
	}
	return specfile.DecodeJSON(file, []byte(text))
}

func (a *app) showSpec(s ledger.Spec) error {
	if a.out.value(s) {
		return nil
	}
	b, err := specfile.Encode(s.AgentSpec)
	if err == nil {
		a.out.line("%s", strings.TrimRight(printableLines(string(b)), "\n"))
	}
	return err
}

func (a *app) wroteSpec(s ledger.Spec, what string) {
	if !a.out.value(s) {
		a.out.line("%s %s", what, s.ID)
	}
}

func newAgentsCreate(a *app) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Make an agent spec: a model, instructions, tools, skills",
		Long: `Create an agent spec of the team, from flags or from a file. Its id is derived from
the name. Without --allow it has every tool that its role and mode permit; an empty
--allow= permits none; --deny takes precedence.`,
		Example: `  teamctl agents create reader --description "reads and reports" --allow read,grep,SendMessage
  teamctl agents create --file agent.toml`,
		Args: takes(0, 1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			draft, err := f.patch(cmd)
			if err != nil {
				return err
			}
			if f.file != "" {
				if len(args) > 0 || len(draft) > 0 {
					return usage(cmd, "--file has the whole spec")
				}
				specs, err := a.fromFile(f.file)
				if err != nil {
					return err
				}
				if len(specs) != 1 {
					return usage(cmd, "%s has %d specs: agents import takes several", f.file, len(specs))
				}
				return a.createSpec(cmd.Context(), specs[0])
			}
			if len(args) == 0 {
				return usage(cmd, "%s needs a name, or --file", cmd.CommandPath())
			}
			draft["name"] = args[0]
			return a.createSpec(cmd.Context(), draft)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) createSpec(ctx context.Context, draft any) error {
	raw, err := json.Marshal(draft)
	if err != nil {
		return err
	}
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		s, err := t.CreateSpec(ctx, c, raw)
		if err == nil {
			a.wroteSpec(s, "created")
		}
		return err
	})
}

func newAgentsUpdate(a *app) *cobra.Command {
	var (
		f     specFlags
		patch string
	)
	cmd := &cobra.Command{
		Use:   "update AGENT",
		Short: "Change an agent spec, from its next turn on",
		Example: `  teamctl agents update reader --deny fetch --description "reads and answers"
  teamctl agents update reader --patch '{"policy": {"tools": {"deny": null}}}'`,
		Args:              takes(1, 1, "the id or name of an agent spec"),
		ValidArgsFunction: first(a.completeSpecs),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			change, err := f.patch(cmd)
			if err != nil {
				return err
			}
			raw := json.RawMessage(patch)
			switch {
			case patch != "" && (len(change) > 0 || f.file != ""), f.file != "" && len(change) > 0:
				return usage(cmd, "--patch, --file and the other flags exclude each other")
			case f.file != "":
				specs, err := a.fromFile(f.file)
				if err != nil {
					return err
				}
				if len(specs) != 1 || specs[0].ID != args[0] {
					return usage(cmd, "%s is not the spec of %s alone", f.file, args[0])
				}
				return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
					if _, err := t.Spec(ctx, args[0]); err != nil {
						return err
					}
					s, err := t.PutSpec(ctx, c, specs[0])
					if err == nil {
						a.wroteSpec(s, "updated")
					}
					return err
				})
			case patch == "" && len(change) == 0:
				return usage(cmd, "no change given")
			case patch == "":
				if raw, err = json.Marshal(change); err != nil {
					return err
				}
			}
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				s, err := t.UpdateSpec(ctx, c, args[0], raw)
				if err == nil {
					a.wroteSpec(s, "updated")
				}
				return err
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "another name; the id stays")
	cmd.Flags().StringVar(&patch, "patch", "", "a JSON merge patch: null removes a field")
	return cmd
}

func newAgentsRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "rm AGENT",
		Short:             "Remove an agent spec that no open session uses",
		Example:           "  teamctl agents rm reader\n  teamctl agents rm reader --json",
		Args:              takes(1, 1, "the id or name of an agent spec"),
		ValidArgsFunction: first(a.completeSpecs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				s, err := t.DeleteSpec(cmd.Context(), c, args[0])
				if err == nil {
					a.wroteSpec(s, "removed")
				}
				return err
			})
		},
	}
}

func newAgentsExport(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "export [AGENT...]",
		Short: "Write agent specs to files, DIR/ID/agent.toml",
		Long: `Write agent specs of the team, all or the named ones, to DIR/ID/agent.toml. The
default DIR is $TEAMCTL_HOME/workspace/agents, whose specs are added to new teams. A
spec that is exported, imported and exported again is the same file.`,
		Example:           "  teamctl agents export\n  teamctl agents export reader --dir .teamctl/agents",
		ValidArgsFunction: a.completeSpecs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				list, err := t.Specs(ctx)
				if err != nil {
					return err
				}
				if len(args) > 0 {
					list = nil
					for _, name := range args {
						s, err := t.Spec(ctx, name)
						if err != nil {
							return err
						}
						list = append(list, s)
					}
				}
				if dir == "" {
					dir = specfile.Dir(t.Layout.Home)
				}
				files := make([]string, 0, len(list))
				for _, s := range list {
					file, err := specfile.Write(dir, s.AgentSpec)
					if err != nil {
						return err
					}
					files = append(files, file)
				}
				if !a.out.value(map[string]any{"files": files}) {
					for _, f := range files {
						a.out.line("%s", f)
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory (default $TEAMCTL_HOME/workspace/agents)")
	return cmd
}

func newAgentsImport(a *app) *cobra.Command {
	var agree bool
	cmd := &cobra.Command{
		Use:   "import [FILE|DIR...]",
		Short: "Read agent specs from files into the team",
		Long: `Read agent specs from agent.toml files, directories of ID/agent.toml, or JSON,
including an older list of subagent_specs; without a name, from
$TEAMCTL_HOME/workspace/agents. A spec of the team with the same id is replaced. All
files are read before a spec is written.

Specs in a repository may come from anyone: a person must consent once to exactly
their content.`,
		Example: "  teamctl agents import\n  teamctl agents import .teamctl/agents --agree\n  teamctl agents import subagents.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				specs, err := a.readSpecs(t.Layout.Home, args)
				if err != nil {
					return err
				}
				for _, s := range specs {
					if err := a.agreeToSpecs(ctx, t.Env, c, s, agree, cmd.CommandPath()+" "+strings.Join(args, " ")); err != nil {
						return err
					}
				}
				out := []ledger.Spec{}
				for _, from := range specs {
					for _, s := range from.specs {
						got, err := t.PutSpec(ctx, c, s)
						if err != nil {
							return err
						}
						out = append(out, got)
					}
				}
				if !a.out.value(map[string]any{"agents": out}) {
					for _, s := range out {
						a.out.line("imported %s", s.ID)
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&agree, "agree", false, "the specs of the repository have been read and may be used")
	return cmd
}

// specSource is where specs were read from.
type specSource struct {
	file  string
	specs []team.AgentSpec
}

func (a *app) readSpecs(home team.Home, args []string) ([]specSource, error) {
	if len(args) == 0 {
		args = []string{specfile.Dir(home)}
	}
	var out []specSource
	for _, path := range args {
		fi, err := os.Stat(path)
		if path == "-" || err == nil && !fi.IsDir() {
			specs, err := a.fromFile(path)
			if err != nil {
				return nil, err
			}
			out = append(out, specSource{path, specs})
			continue
		}
		if err != nil {
			return nil, team.Errorf(team.CodeNotFound, "%s is not there", path).WithReason(team.ReasonFileMissing)
		}
		specs, troubles := specfile.ReadAll(path)
		if len(troubles) > 0 {
			return nil, errors.Join(troubles...)
		}
		if len(specs) == 0 {
			return nil, team.Errorf(team.CodeNotFound, "%s has no agent specs", path).WithReason(team.ReasonFileMissing).WithHint("a spec is in ID/" + specfile.Name)
		}
		out = append(out, specSource{filepath.Join(path, specs[0].ID, specfile.Name), specs})
	}
	return out, nil
}

// agreeToSpecs asks for the consent that specs of a repository need.
func (a *app) agreeToSpecs(ctx context.Context, env *tool.Env, c tool.Caller, s specSource, now bool, again string) error {
	if own := specfile.Dir(env.Home); s.file == "-" || strings.HasPrefix(s.file, own+string(filepath.Separator)) {
		return nil
	}
	var texts []string
	for _, spec := range s.specs {
		b, err := specfile.Encode(spec)
		if err != nil {
			return err
		}
		texts = append(texts, string(b))
	}
	_, err := a.agreeTo(ctx, env, c, s.file, "agent specs", texts, now, again)
	return err
}

// completeSpecs completes the ids of the team's agent specs.
func (a *app) completeSpecs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	_ = a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error { // without a team there is nothing to complete
		list, err := t.Ledger.Specs(cmd.Context())
		for _, s := range list {
			ids = append(ids, s.ID+"\t"+s.Description)
		}
		return err
	})
	return ids, noFiles
}

// specsOf returns the specs of the team, if there is a team.
func (a *app) specsOf(ctx context.Context) (list []ledger.Spec, err error) {
	err = a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) (err error) {
		list, err = t.Specs(ctx)
		return err
	})
	switch team.ReasonOf(err) {
	case team.ReasonTeamNotFound, team.ReasonTeamAmbiguous:
		return []ledger.Spec{}, nil
	}
	return list, err
}

// listSpecs prints agent specs in a table.
func (a *app) listSpecs(list []ledger.Spec) {
	var rows [][]string
	for _, s := range list {
		m := "-"
		if d := s.Defaults.Model; d.Model != "" {
			m = d.Provider + "/" + d.Model
		}
		rows = append(rows, []string{s.ID, plain.Visible(s.Name), plain.Visible(m), plain.Visible(firstLine(s.Description))})
	}
	if len(rows) > 0 {
		a.out.line("")
		a.out.table([]string{"SPEC", "NAME", "MODEL", "WHAT IT IS"}, rows, false)
	}
}
