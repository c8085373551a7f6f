package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manPages returns the pages of section 1 by file name. cobra's own generator goes through
// Markdown: its parser would add half a millisecond and 200 KB to every start of teamctl, for a
// command that runs only when a package is built.
func manPages(root *cobra.Command) (map[string][]byte, error) {
	root.InitDefaultHelpCmd()
	files := map[string][]byte{}
	err := walkCommands(root, func(c *cobra.Command) error {
		page := manPage(c)
		if short := shortForm(strings.TrimPrefix(c.CommandPath(), "teamctl ")); short != "" {
			page = []byte(".so man1/" + manName("teamctl "+short) + ".1\n")
		}
		files[manName(c.CommandPath())+".1"] = page
		return nil
	})
	return files, err
}

func manName(path string) string { return strings.ReplaceAll(path, " ", "-") }

// manPage returns the page of a command. Its title has no date, so the same commands give the same
// bytes.
func manPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	name := manName(c.CommandPath())
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"teamctl\" \"teamctl manual\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for i, p := range strings.Split(strings.TrimSpace(cmp.Or(c.Long, c.Short+".")), "\n\n") {
		switch {
		case strings.HasPrefix(p, "  "):
			manLiteral(&b, p)
		case i > 0:
			b.WriteString(".PP\n" + roff(p) + "\n")
		default:
			b.WriteString(roff(p) + "\n")
		}
	}
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(s.Name()), roff(s.Short))
			}
		}
	}
	manFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manFlags(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		manLiteral(&b, c.Example)
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n\\fB%s\\fP(1)\n", roff(manName(c.Parent().CommandPath())))
	} else {
		b.WriteString(".SH EXIT STATUS\n" + roff(exitStatuses) + "\n")
	}
	return b.Bytes()
}

// exitStatuses explains the exit status of every command.
const exitStatuses = `0 done; 1 an internal error, or a task that failed; 2 invalid use or input; 3 not found; 4 conflict; 5 denied; 6 a limit is
reached; 7 unavailable; 8 timeout; 128 + N ended by signal N.`

func manFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, what := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fP, ", f.Shorthand)
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fP", roff(f.Name))
		if kind != "" {
			fmt.Fprintf(b, " \\fI%s\\fP", roff(strings.ToUpper(kind)))
		}
		b.WriteString("\n" + roff(what) + "\n")
	})
}

// manLiteral writes lines whose breaks and spaces are preserved.
func manLiteral(b *bytes.Buffer, text string) {
	b.WriteString(".PP\n.RS\n.nf\n" + roff(strings.Trim(text, "\n")) + "\n.fi\n.RE\n")
}

// roff escapes text so that no character of it is a formatter command, and hyphens can be copied
// and pasted.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
