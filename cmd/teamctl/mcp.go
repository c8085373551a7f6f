package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool/mcp"
	"github.com/teamctl/teamctl/tool/op"
)

func newMCP(a *app) *cobra.Command {
	var http, tokenFile string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the team's operations to an MCP client",
		Long: `Serve every operation as an MCP tool, with the team's roster, tasks, and the caller's
mail as resources, over standard input and output. The environment of this command
identifies the client: a member by its token, else a program that leads the team, with
the permission mode of the lead. teamctl mcp config prints how to register the server
with each client.

With --http it listens on an address of this machine instead, for clients that need
that. Every request must contain a bearer token, which is printed, or read from a
file.`,
		Example: `  teamctl mcp config claude
  teamctl mcp --team demo
  teamctl mcp --http 127.0.0.1:0`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.served = true
			if tokenFile != "" && http == "" {
				return usage(cmd, "--token-file is for --http")
			}
			if http != "" {
				return a.mcpHTTP(cmd.Context(), http, tokenFile)
			}
			return a.mcpStdio(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&http, "http", "", "listen on this loopback ADDRESS:PORT; port 0 takes a free one")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the bearer token (default: a new token, printed)")
	cmd.AddCommand(newMCPConfig(a))
	return cmd
}

// session gives the caller of this command access to the operations.
func (a *app) session() (*op.Session, error) {
	env, err := a.tools()
	if err != nil {
		return nil, err
	}
	s := op.NewSession(env, a.team, a.caller, a.outsider)
	s.Place = place()
	return s, nil
}

func (a *app) mcpServer(ctx context.Context) (*mcp.Server, error) {
	s, err := a.session()
	if err != nil {
		return nil, err
	}
	s.AsLead = true
	return mcp.New(ctx, s, readVersion().Version)
}

func (a *app) mcpStdio(ctx context.Context) error {
	s, err := a.mcpServer(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(ctx, mcp.Stdio())
}

func (a *app) mcpHTTP(ctx context.Context, addr, tokenFile string) error {
	token := supervisor.NewToken()
	if tokenFile != "" {
		b, err := os.ReadFile(tokenFile)
		if err != nil {
			return team.Errorf(team.CodeInvalid, "read the token: %w", err)
		}
		if token = strings.TrimSpace(string(b)); len(token) < 16 {
			return team.Errorf(team.CodeInvalid, "the token in %s is too short: 16 characters at least", tokenFile).WithReason(team.ReasonBadToken)
		}
	}
	s, err := a.mcpServer(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ln, err := mcp.Listen(ctx, addr)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String() + mcp.Path
	v := map[string]any{"url": url}
	if tokenFile == "" {
		v["token"] = token
	}
	if !a.out.value(v) {
		a.out.line("%s", url)
		if tokenFile == "" {
			a.out.line("token %s", token)
		}
	}
	return s.Serve(ctx, ln, token)
}

func newCall(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "call [OPERATION [JSON]]",
		Short: "Call an operation as MCP clients do: JSON in, JSON out",
		Long: `Call an operation by its name for MCP clients, with the same input and the same
result; - reads the input from standard input. Without a name it lists the operations
that you may call, without an input it calls with an empty one. docs/tools.md has all
operations with their schemas.`,
		Example: `  teamctl call
  teamctl call TaskCreate '{"subject": "vet", "description": "go vet ./..."}'
  teamctl call InboxRead '{"wait_seconds": 60}'`,
		Args:              takes(0, 2, "an operation and its input as one word of JSON"),
		ValidArgsFunction: first(a.completeOps),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listOps(cmd.Context(), s)
			}
			input := ""
			if len(args) == 2 {
				input = args[1]
			}
			if input == "-" {
				b, err := io.ReadAll(a.stdin)
				if err != nil {
					return team.Errorf(team.CodeInvalid, "read standard input: %w", err)
				}
				input = string(b)
			}
			if a.out.format == formatName {
				return usage(cmd, "the result of an operation has no names for -o name")
			}
			a.out.json = true // the only format, also for errors
			out, err := s.CallJSON(cmd.Context(), args[0], []byte(input))
			if err != nil {
				return err
			}
			a.out.value(out)
			if a.out.failure() != nil {
				return a.out.failure()
			}
			return s.Received(cmd.Context())
		},
	}
}

func (a *app) listOps(ctx context.Context, s *op.Session) error {
	list, err := s.Offered(ctx)
	if err != nil {
		return err
	}
	type row struct {
		Name string `json:"name"`
		Verb string `json:"verb,omitempty"`
		Text string `json:"description"`
	}
	rows := make([]row, len(list))
	cells := make([][]string, len(list))
	for i, o := range list {
		text, _, _ := strings.Cut(o.Doc(), ". ")
		text, _, _ = strings.Cut(text, "\n")
		rows[i] = row{o.Name, o.Verb, o.Doc()}
		cells[i] = []string{o.Name, dash(o.Verb), strings.TrimSuffix(text, ".")}
	}
	if !a.out.value(map[string]any{"operations": rows}) {
		a.out.table([]string{"OPERATION", "COMMAND", "WHAT IT DOES"}, cells, false)
	}
	return nil
}
