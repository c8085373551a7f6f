package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/internal/view"
)

// docs/cli.md is generated from the table of commands, docs/cli-json.md from the shapes and their
// goldens, the tables of keys and
// actions in docs/ui.md from internal/tui and internal/view:
//
//	go test ./cmd/teamctl -run TestGeneratedFiles -update
//
//go:generate go test -run ^(TestGeneratedFiles|TestMemberDoors)$ -update .

var update = flag.Bool("update", false, "write the generated files and goldens anew")

// TestGeneratedFiles checks that the generated files are up to date.
func TestGeneratedFiles(t *testing.T) {
	t.Parallel()
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	for path, want := range files {
		full := filepath.Join(root, path)
		have, err := os.ReadFile(full)
		switch {
		case err == nil && bytes.Equal(have, want):
		case !*update:
			t.Errorf("%s is stale: go generate ./cmd/teamctl", path)
		default:
			if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, want, 0o644)); err != nil {
				t.Error(err)
			}
		}
	}
}

// generated returns the content of every generated file, by its path from the root.
func generated() (map[string][]byte, error) {
	o := &output{stdout: os.Stdout, stderr: os.Stderr}
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	root.InitDefaultHelpCmd()
	files := map[string][]byte{}
	var ref bytes.Buffer
	ref.WriteString(cliHead + endingTable())
	err := walkCommands(root, func(c *cobra.Command) error {
		c.InitDefaultHelpFlag() // so that its usage line ends in [flags], as with --help
		section(&ref, c)
		return nil
	})
	if err == nil {
		files["docs/cli-json.md"], err = cliJSON()
	}
	if err == nil {
		files["docs/ui.md"], err = withTables(filepath.Join("..", "..", "docs", "ui.md"))
	}
	files["docs/cli.md"] = append(bytes.TrimRight(ref.Bytes(), "\n"), '\n')
	return files, err
}

// withTables returns docs/ui.md with the current tables of keys and actions.
func withTables(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(b)
	for name, table := range map[string]string{"keys": tui.KeyTable(), "actions": actionTable()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return nil, fmt.Errorf("%s has no place for the %s", path, name)
		}
		text = before + begin + table + end + after
	}
	return []byte(text), nil
}

// actionTable returns the table of the actions of screens, for docs/ui.md.
func actionTable() string {
	var b strings.Builder
	b.WriteString("| key | on | action | at a shell | page |\n|---|---|---|---|---|\n")
	for _, x := range view.Actions() {
		things := make([]string, len(x.On))
		for i, t := range x.On {
			things[i] = string(t)
		}
		key, page := "`o`", ""
		if x.Key != "" {
			key = "`" + x.Key + "`"
		}
		if x.Page {
			page = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` | %s |\n", key, strings.Join(things, ", "), x.Title, x.Command, page)
	}
	return b.String()
}

const cliHead = `# Commands

<!-- Generated from the table of commands by go generate ./cmd/teamctl; do not edit. -->

The verbs of every day are below teamctl itself and, as their long forms, below a noun: ` + "`teamctl spawn`" + ` is ` + "`teamctl member spawn`" + `.
Both are the same command. Flags of all commands:

| flag | meaning |
|---|---|
| ` + "`--team NAME`" + ` | the team to work on; default ` + "`$TEAMCTL_TEAM`" + `, else the only one, else the one of the current directory (its repository, or a worktree of it) |
| ` + "`--as NAME`" + ` | act as this member; ` + "`$TEAMCTL_TOKEN`" + ` must have its token |
| ` + "`-o wide\\|json\\|jsonl\\|name`" + ` | the form of the result; ` + "`--json`" + ` is ` + "`-o json`" + `. What is in it: [cli-json.md](cli-json.md) |
| ` + "`-h`, `--help`" + ` | help for the command |

Exit status: ` + exitStatuses + `

Man pages and the completion scripts of bash, zsh and fish are written by ` + "[`teamctl docs`](#teamctl-docs)" + `.
`

// endingTable returns the table of teamctl help ending.
func endingTable() string {
	var b strings.Builder
	b.WriteString("\n## What ends what\n\n| verb | ends | and then | back with |\n|---|---|---|---|\n")
	for _, e := range endings {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", e.verb, e.what, e.then, e.back)
	}
	return b.String() + "\nA member that is stopped, shut down or killed gives its task back. Its branch and its commits stay in every case.\n"
}

// section writes the section on a command for docs/cli.md.
func section(b *bytes.Buffer, c *cobra.Command) {
	path := strings.TrimPrefix(c.CommandPath(), "teamctl ")
	if c.Parent() == nil || shortForm(path) != "" {
		return // described at the top or under its short form
	}
	long := ""
	for _, n := range nouns {
		for _, f := range n.forms {
			if f.short == path {
				long = "teamctl " + n.name + " " + f.verb
			}
		}
	}
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n\n```\n%s\n```\n", strings.Repeat("#", min(4, strings.Count(c.CommandPath(), " ")+1)), c.CommandPath(), c.Short, c.UseLine())
	if long != "" {
		fmt.Fprintf(b, "\nLong form: `%s`.\n", long)
	}
	text, _, _ := strings.Cut(c.Long, "\n\nThe long form is ")
	if text = strings.TrimSpace(text); text != "" && text != c.Short+"." {
		b.WriteString("\n" + proseOrCode(text) + "\n")
	}
	if c.HasSubCommands() {
		var verbs []string
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				verbs = append(verbs, "`"+s.Name()+"`")
			}
		}
		fmt.Fprintf(b, "\nVerbs: %s.\n", strings.Join(verbs, ", "))
	}
	var flags []string
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, flagRow(f)) })
	flags = slices.DeleteFunc(flags, func(s string) bool { return s == "" })
	if len(flags) > 0 {
		b.WriteString("\n| flag | meaning |\n|---|---|\n" + strings.Join(flags, ""))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll("\n"+c.Example, "\n  ", "\n")[1:])
	}
}

// proseOrCode turns the indented paragraphs of a help text into code blocks.
func proseOrCode(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "  ") {
			paragraphs[i] = "```\n" + p + "\n```"
			continue
		}
		paragraphs[i] = strings.NewReplacer("<", "\\<", "*", "\\*").Replace(p)
	}
	return strings.Join(paragraphs, "\n\n")
}

func flagRow(f *pflag.Flag) string {
	if f.Hidden || f.Name == "help" {
		return ""
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	kind, what := pflag.UnquoteUsage(f)
	if kind != "" {
		name += " " + strings.ToUpper(kind)
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" && d != "-1" && !strings.Contains(what, "default") {
		what += " (default " + d + ")"
	}
	return fmt.Sprintf("| `%s` | %s |\n", name, strings.ReplaceAll(what, "|", "\\|"))
}
