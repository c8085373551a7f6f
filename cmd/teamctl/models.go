package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/tool"
)

func newModels(a *app) *cobra.Command {
	var refresh bool
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List the models that built-in agents can ask",
		Long: `List the models for agents of kind llm: those that the configured providers report,
which are stored for a day, and those in config.yaml. Context sizes and prices come
from the provider or the file; - is unknown.`,
		Example: `  teamctl models
  teamctl models anthropic
  teamctl models openai --refresh`,
		Args: takes(0, 1, "the name of a provider"),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := a.tools()
			if err != nil {
				return err
			}
			in := ""
			if len(args) > 0 {
				in = args[0]
			}
			list, err := env.Models(cmd.Context(), in, refresh)
			if err != nil || a.out.value(map[string]any{"providers": list}) {
				return err
			}
			a.showModels(list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&refresh, "refresh", false, "ask the providers now")
	return cmd
}

func (a *app) showModels(list []tool.ProviderModels) {
	var rows [][]string
	number := func(n int) string {
		if n == 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}
	for _, p := range list {
		for _, m := range p.Models {
			price := "-"
			if m.Price != nil {
				price = strconv.FormatFloat(m.Price.Input, 'f', -1, 64) + " / " + strconv.FormatFloat(m.Price.Output, 'f', -1, 64)
			}
			rows = append(rows, []string{plain.Visible(m.Ref), number(m.Context), number(m.MaxOutput), price})
		}
	}
	a.out.table([]string{"MODEL", "CONTEXT", "OUTPUT", "$ IN / OUT"}, rows, false)
	for _, p := range list {
		if p.Problem != "" {
			a.out.note("%s: %s", p.Provider, printable(p.Problem))
		}
	}
}
