package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/tui"
)

// TestNoFullScreen checks that teamctl alone opens no full screen for an agent at a terminal, and none at a terminal
// that cannot show one.
func TestNoFullScreen(t *testing.T) {
	r := newFaultRig(t)
	r.agent("ann", "never", "sleep", "10000")
	for name, env := range map[string][]string{
		"an agent":        {"TERM=xterm-256color", "TEAMCTL_AGENT_ID=ann@f"},
		"a dumb terminal": {"TERM=dumb"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c := exec.CommandContext(ctx, r.exe)
		c.Dir, c.Env = r.dir, append(append([]string{}, r.env...), env...)
		var text strings.Builder
		out := readTerminal(startOnTerminal(t, c, 80, 24), &text)
		err := c.Wait() // a screen would wait for keys until it is killed
		<-out.done
		out.close()
		if ctx.Err() != nil || strings.Contains(text.String(), "\x1b[?1049h") || text.Len() == 0 {
			t.Errorf("%s: %v, %q", name, err, text.String())
		}
		cancel()
	}
}

// TestMergedMemberHasIt checks that a member whose branch was just merged is not listed as one that lacks it.
func TestMergedMemberHasIt(t *testing.T) {
	r := newFaultRig(t)
	for _, name := range []string{"builder", "other"} {
		r.teamctl("spawn", name, "--restart", "never", "--", "sleep", "10000")
	}
	tree := r.layout.Worktrees() + "/builder"
	if err := os.WriteFile(tree+"/one.txt", []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.command("git", "-C", tree, "add", ".")
	r.command("git", "-C", tree, "commit", "-q", "-m", "one")
	text := r.command("sh", "-c", r.exe+" merge builder 2>&1")
	_, lacks, said := strings.Cut(text, "not rebased yet:")
	if !strings.Contains(text, "builder merged into") || !said || !strings.Contains(lacks, "other") || strings.Contains(lacks, "builder") {
		t.Errorf("%s", text)
	}
}

// TestDrawsASCII checks that the flag comes before ui.yaml, and that before the locale and the terminal.
func TestDrawsASCII(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		flags        screenFlags
		file         *bool
		locale, term string
		want         bool
	}{
		{locale: "C.UTF-8", term: "xterm-256color"},
		{locale: "C", term: "xterm-256color", want: true},
		{locale: "C.UTF-8", term: "linux", want: true},
		{locale: "C.UTF-8", term: "vt100", want: true},
		{locale: "C.UTF-8", term: "vt220-8bit", want: true},
		{file: &no, locale: "C.UTF-8", term: "linux"},
		{file: &yes, locale: "C.UTF-8", term: "xterm", want: true},
		{flags: screenFlags{asciiSaid: true}, file: &yes, locale: "C", term: "linux"},
		{flags: screenFlags{asciiSaid: true, ascii: true}, file: &no, locale: "C.UTF-8", term: "xterm", want: true},
	} {
		t.Setenv("LC_ALL", c.locale)
		t.Setenv("TERM", c.term)
		if got := c.flags.drawsASCII(tui.Config{ASCII: c.file}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
