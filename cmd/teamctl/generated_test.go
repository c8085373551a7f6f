package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Man pages, completions and docs/cli.md are made from the table of commands,
// docs/cli-json.md from its shapes and their goldens:
//
//	go test ./cmd/teamctl -run TestGeneratedFiles -update
//
//go:generate go test -run ^TestGeneratedFiles$ -update .

var update = flag.Bool("update", false, "write the generated files and goldens anew")

// TestGeneratedFiles: what is checked in is what the commands say now. A file that
// no command is behind any more is stale, too.
func TestGeneratedFiles(t *testing.T) {
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	for _, dir := range []string{"docs/man", "completions"} {
		have, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, f := range have {
			path := dir + "/" + f.Name()
			if _, ok := files[path]; ok {
				continue
			}
			if !*update {
				t.Errorf("%s is of no command: go generate ./cmd/teamctl", path)
			} else if err := os.Remove(filepath.Join(root, path)); err != nil {
				t.Error(err)
			}
		}
	}
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

// generated is every generated file by its path from the root.
func generated() (map[string][]byte, error) {
	o := &output{stdout: os.Stdout, stderr: os.Stderr}
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	root.DisableAutoGenTag = true
	root.InitDefaultHelpCmd()
	files := map[string][]byte{}
	for name, gen := range map[string]func(*bytes.Buffer) error{
		"teamctl.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"_teamctl":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"teamctl.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := gen(&b); err != nil {
			return nil, err
		}
		files["completions/"+name] = b.Bytes()
	}
	var ref bytes.Buffer
	ref.WriteString(cliHead)
	err := walkCommands(root, func(c *cobra.Command) error {
		page, err := manPage(c)
		files["docs/man/"+strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"] = page
		section(&ref, c)
		return err
	})
	if err == nil {
		files["docs/cli-json.md"], err = cliJSON()
	}
	files["docs/cli.md"] = append(bytes.TrimRight(ref.Bytes(), "\n"), '\n')
	return files, err
}

// walkCommands visits every command that people see, parents first.
func walkCommands(c *cobra.Command, visit func(*cobra.Command) error) error {
	if err := visit(c); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "completion" {
			continue
		}
		if err := walkCommands(sub, visit); err != nil {
			return err
		}
	}
	return nil
}

// titleDate is the date that the page would carry; it says nothing and changes.
var titleDate = regexp.MustCompile(`(?m)^\.TH ("[^"]*" "1") "[^"]*"`)

// manPage is a command's page. A long form refers to the page of its short form.
func manPage(c *cobra.Command) ([]byte, error) {
	if short := shortForm(strings.TrimPrefix(c.CommandPath(), "teamctl ")); short != "" {
		return []byte(".so man1/teamctl-" + strings.ReplaceAll(short, " ", "-") + ".1\n"), nil
	}
	var b bytes.Buffer
	epoch := time.Unix(0, 0)
	head := &doc.GenManHeader{
		Title: strings.ToUpper(strings.ReplaceAll(c.CommandPath(), " ", "-")), Section: "1",
		Source: "teamctl", Manual: "teamctl manual", Date: &epoch,
	}
	if err := doc.GenMan(c, head, &b); err != nil {
		return nil, err
	}
	page := titleDate.ReplaceAll(b.Bytes(), []byte(`.TH $1 ""`))
	if c.Parent() == nil {
		page = append(page, exitStatusMan...)
	}
	return page, nil
}

const exitStatusMan = `
.SH EXIT STATUS
0 done; 1 internal error, or a task failed; 2 invalid use or input; 3 not found; 4 conflict; 5 denied; 6 a limit is
reached; 7 unavailable; 8 timeout; 128 + N ended by signal N.
`

const cliHead = `# Commands

<!-- Generated from the table of commands by go generate ./cmd/teamctl; do not edit. -->

The verbs of every day stand below teamctl itself and, as their long forms, below a noun: ` + "`teamctl spawn`" + ` is ` + "`teamctl member spawn`" + `.
Both are the same command. Flags of all commands:

| flag | meaning |
|---|---|
| ` + "`--team NAME`" + ` | the team to work on; default ` + "`$TEAMCTL_TEAM`" + `, else the only one |
| ` + "`--as NAME`" + ` | act as this member; ` + "`$TEAMCTL_TOKEN`" + ` must have its token |
| ` + "`-o wide\\|json\\|jsonl\\|name`" + ` | the form of the result; ` + "`--json`" + ` is ` + "`-o json`" + `. What is in it: [cli-json.md](cli-json.md) |
| ` + "`-h`, `--help`" + ` | help for the command |

Exit status: 0 done; 1 an internal error, or a task that failed; 2 invalid use or input; 3 not found; 4 conflict; 5 denied; 6 a limit is reached;
7 unavailable; 8 timeout; 128 + N ended by signal N.

Shell completion is in ` + "[completions/](../completions)" + ` (bash, zsh, fish), man pages are in ` + "[man/](man)" + `.
`

// section is a command in docs/cli.md.
func section(b *bytes.Buffer, c *cobra.Command) {
	path := strings.TrimPrefix(c.CommandPath(), "teamctl ")
	if c.Parent() == nil || shortForm(path) != "" {
		return // it stands at the top, or as its short form
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

// proseOrCode keeps indented paragraphs of a help text as they are.
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
