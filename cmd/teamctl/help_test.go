package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teamctl/teamctl/internal/view"
)

// testRoot returns a fresh tree of all commands, since parsing changes flags.
func testRoot() *cobra.Command {
	o, _, _ := testOutput(false)
	return (&app{out: o, stdin: strings.NewReader("")}).root(nil)
}

// TestFirstScreen checks that the first screen of the help fits a terminal of 80 by 24 with the
// prompt below it, that no help topic has a line that is cut off, and that the commands they name
// exist.
func TestFirstScreen(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help", "all"}, {"help", "ending"}, {"help", "flags"}, {"task", "--help"}} {
		o, out, _ := testOutput(false)
		if code := (&app{out: o, stdin: strings.NewReader("")}).run(t.Context(), args); code != 0 {
			t.Fatalf("%q: exit status %d", args, code)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if args[0] == "--help" && len(lines) > 23 {
			t.Errorf("the first screen has %d lines", len(lines))
		}
		for _, l := range lines {
			if view.Width(l) > 80 || strings.Contains(l, "…") {
				t.Errorf("teamctl %s: %q has %d columns, or is cut off", strings.Join(args, " "), l, view.Width(l))
			}
		}
	}
	for _, g := range daily {
		for _, path := range g.paths {
			if c, rest, err := testRoot().Find(strings.Fields(path)); err != nil || len(rest) > 0 || !c.Runnable() {
				t.Errorf("%q is not a command: %v", path, err)
			}
		}
	}
	for _, e := range endings {
		for _, path := range []string{e.verb, e.back} {
			if _, rest, err := testRoot().Find(strings.Fields(path)); err != nil || len(rest) > 0 {
				t.Errorf("%q is in endings and is not a command: %v", path, err)
			}
		}
	}
}

// helpVerbs lists the words that may begin a help text. A new one is fine if it is a verb.
var helpVerbs = strings.Fields(`Bring Change Draw End Freeze Give Keep Add Allow Answer Approve Ask Assign Attach Bridge Broadcast Call Cancel Check Claim Close Comment Create Delete Edit Explain Export
	Compact Find Generate Go Hide Hold Import Inspect Install Interrupt Join Kill Label Let List Look Manage Make Merge Move Open Pause Prepare Print Prune Put Queue Read Record
	Rebuild Recover Reject Release Remove Rename Report Request Rescue Restart Restore Resume Retry Run Save Search See Send Serve Set Show Shut Start Stop Submit Switch Take Tell Test
	Undo Wait Watch Write`)

// TestHelpTexts checks that every help text begins with a verb and ends with at least two
// examples, each of them a valid command line.
func TestHelpTexts(t *testing.T) {
	seen := 0
	_ = walkCommands(testRoot(), func(c *cobra.Command) error {
		seen++
		path := c.CommandPath()
		for _, text := range []string{c.Short, c.Long} {
			word, _, _ := strings.Cut(text, " ")
			if text != "" && !strings.Contains(" "+strings.Join(helpVerbs, " ")+" ", " "+strings.TrimRight(word, ".:,\n")+" ") {
				t.Errorf("%s: the help begins with %q, which is not a verb", path, word)
			}
		}
		if strings.HasSuffix(c.Short, ".") || view.Width(c.Short) > 57 {
			t.Errorf("%s: %q has a full stop or more than 57 columns", path, c.Short)
		}
		if c.Parent() == nil {
			return nil
		}
		if usage := usageText(c); !strings.HasSuffix(usage, c.Example+"\n") {
			t.Errorf("%s: the help does not end with its examples: %q", path, usage)
		}
		lines := 0
		for _, l := range strings.Split(c.Example, "\n") {
			if l = strings.TrimSpace(l); l != "" {
				lines++
				takesLine(t, path, l)
				if why := unpasted(l); why != "" {
					t.Errorf("%s: %q does not work when it is pasted: %s", path, l, why)
				}
			}
		}
		if lines < 2 {
			t.Errorf("%s has %d examples", path, lines)
		}
		return nil
	})
	if seen < 120 {
		t.Errorf("only %d commands were checked", seen)
	}
}

// unpasted returns why a line cannot be pasted into a shell. zsh does not accept comments at its
// prompt, and fails if a pattern matches no file.
func unpasted(line string) string {
	var quote, last rune
	for _, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (last == 0 || unicode.IsSpace(last)):
			return "it has a comment"
		case strings.ContainsRune("?*[", r):
			return "it has a pattern for file names"
		}
		last = r
	}
	if quote != 0 {
		return "a quote is not closed"
	}
	return ""
}

// takesLine checks that every teamctl command in a line of shell exists and accepts its flags and
// arguments.
func takesLine(t *testing.T, where, line string) {
	t.Helper()
	found := false
	for _, argv := range teamctlCommands(line) {
		found = true
		root := testRoot()
		cmd, rest, err := root.Find(argv)
		if err == nil && (cmd == root || len(rest) > 0 && cmd.HasSubCommands() && !cmd.Runnable()) {
			err = unknownVerb(cmd, rest)
		}
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil && !errors.Is(err, pflag.ErrHelp) {
			t.Errorf("%s: %q is not accepted: %v", where, strings.Join(argv, " "), err)
		}
	}
	if !found {
		t.Errorf("%s: %q has no teamctl command", where, line)
	}
}

// teamctlCommands returns the arguments of each teamctl command in a line of shell. It handles
// the quotes, lists, pipes, redirections, comments and $() that the examples use.
func teamctlCommands(line string) [][]string {
	var (
		out   [][]string
		words []string
		word  strings.Builder
		has   bool
		quote rune
	)
	end := func() {
		if has {
			words = append(words, word.String())
		}
		word.Reset()
		has = false
	}
	command := func() {
		end()
		for len(words) > 1 && strings.Contains(words[0], "=") { // environment of the command
			words = words[1:]
		}
		if len(words) > 0 && words[0] == "teamctl" {
			out = append(out, words[1:])
		}
		words = nil
	}
	for i, r := range line {
		switch {
		case quote == '\'' && r != quote, quote == '"' && r != quote && !strings.HasPrefix(line[i:], "$(teamctl"):
			word.WriteRune(r)
		case quote == '"' && r != quote: // a command in a string: the text before it is not a command
			quote, words = 0, nil
			word.Reset()
			has = false
		case quote != 0:
			quote = 0
		case r == '\'' || r == '"':
			quote, has = r, true
		case r == '#' && !has:
			command()
			return out
		case strings.ContainsRune("|;&()", r):
			command()
		case r == '<' || r == '>':
			command() // the file becomes the first word, so it is not taken for a command
		case unicode.IsSpace(r):
			end()
		default:
			word.WriteRune(r)
			has = true
		}
	}
	command()
	return out
}

// commandInText matches a teamctl command in a text.
var commandInText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`teamctl( [a-z][a-z-]*)+`) })

// commandInPage matches a teamctl command in a page, in code or on a line of its own.
var commandInPage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`teamctl[^`\n]*`|(?m)^(\\$ )?teamctl .*$")
})

// TestNamedCommands checks that every command named in a hint, a note or a page exists.
func TestNamedCommands(t *testing.T) {
	root := testRoot()
	known := func(text string) bool {
		words := strings.Fields(text)[1:]
		c, rest, err := root.Find(words)
		for _, topic := range topics {
			if len(words) == 2 && words[0] == "help" && words[1] == topic.name {
				return true
			}
		}
		for _, v := range verbs[len(verbs)-1].all { // commands that are not for people
			if v.name == words[0] {
				return true
			}
		}
		return err == nil && c != root && (len(rest) == 0 || c.Runnable() && !strings.HasSuffix(c.Use, " VERB"))
	}
	top := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == ".git" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		var texts []string
		switch filepath.Ext(path) {
		case ".go":
			if !strings.HasSuffix(path, "_test.go") {
				texts, err = hintsIn(path)
			}
		case ".md":
			if !strings.Contains(path, "changelog") {
				var data []byte
				data, err = os.ReadFile(path)
				for _, m := range commandInPage().FindAll(data, -1) {
					texts = append(texts, string(bytes.Trim(m, "`$ ")))
				}
			}
		}
		for _, text := range texts {
			if filepath.Ext(path) == ".go" && strings.Contains(text, " # ") {
				t.Errorf("%s: %q: %s", path, text, unpasted(text))
			}
			for _, m := range commandInText().FindAllString(text, -1) {
				checked++
				if !known(m) && !prose(m) {
					t.Errorf("%s: %q: %q is not a command", path, text, m)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 300 {
		t.Errorf("only %d commands were found", checked)
	}
}

// prose reports whether a match is the program's name in a sentence.
func prose(m string) bool {
	w := strings.Fields(m)[1]
	for _, p := range []string{"is", "itself", "needs", "cannot", "does", "has", "with", "and", "in", "on", "of", "wrote", "or", "keeps", "runs", "started", "as", "binary", "made", "asks"} {
		if w == p {
			return true
		}
	}
	return false
}

// hintsIn returns the string literals with a teamctl command in the hints and notes of a file.
// Other parts of a concatenation are left out.
func hintsIn(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte("teamctl ")) { // most need not be parsed
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, data, 0)
	if err != nil {
		return nil, err
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "WithHint" && sel.Sel.Name != "hint" && sel.Sel.Name != "note" {
			return true
		}
		for _, arg := range call.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(s, "teamctl ") {
						out = append(out, s)
					}
				}
				return true
			})
		}
		return true
	})
	return out, nil
}
