package main

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
)

// nasty has characters that a terminal would obey or not show.
const nasty = "a\x1b[31mb\u202ec\u200bd\u009be\x07f\rg"

// TestNothingHidden checks that no verb that shows something prints a control, bidi or zero-width
// character from the texts of a team, and that --json keeps the text. It runs every verb that has
// no effect without arguments, including future ones.
func TestNothingHidden(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--backend", "pty", "--prompt", nasty, "--env", "NASTY="+nasty, "--", "sh", "-c", "exec sleep 1000 # "+nasty)
	tree := filepath.Join(r.layout.Worktrees(), "ann")
	if err := os.WriteFile(filepath.Join(tree, nasty), []byte(nasty), 0o600); err != nil {
		t.Fatal(err)
	}
	r.command("git", "-C", tree, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", nasty)
	r.teamctl("task", "add", nasty, "--description", nasty+"\n"+nasty, "--meta", "k="+nasty)
	r.teamctl("send", "ann", nasty+"\n"+nasty)
	r.teamctl("lease", "take", "src/\x1b[31m]", "--why", nasty)
	helper := filepath.Join(r.dir, "helper.sh")
	if err := os.WriteFile(helper, []byte(r.teamctl("join", "helper")), 0o600); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]string{"command": nasty})
	if err != nil {
		t.Fatal(err)
	}
	r.command("sh", "-c", `. "$0" && "$1" ask permission Bash --input "$2" && "$1" send team-lead "$3" && "$1" task claim 1 && "$1" task fail 1 --error "$3"`,
		helper, r.exe, string(input), nasty)
	var shown struct{ Subject string }
	if err := json.Unmarshal([]byte(r.teamctl("task", "show", "1", "--json")), &shown); err != nil || shown.Subject != nasty {
		t.Errorf("%q, %v", shown.Subject, err)
	}

	acting := map[string]bool{} // or endless, or not for people
	for _, name := range strings.Fields(`attach board bridge bridge/claude web delete down mcp leave join wait watch shutdown stop start restart kill recover relocate merge up
		supervise hook acp resume pause interrupt agents/test service/install service/uninstall debug/record run/close run/start completion scratchpad/watch docs/man docs/completions
		doctor checkpoint/take checkpoint/restore worktree/prepare ledger/recover ledger/backup inbox lease/release usage/resume task/export`) {
		acting[name] = true
	}
	root := (&app{out: &output{stdout: io.Discard, stderr: io.Discard}}).root(nil)
	var lines [][]string
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			p := append(slices.Clone(path), sub.Name())
			name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.Join(p, "/"), "team/"), "member/"), "message/"), "task/")
			if sub.Hidden || acting[name] || acting[strings.Join(p, "/")] || p[0] == "completion" {
				continue
			}
			if sub.Runnable() {
				lines = append(lines, p)
			}
			walk(sub, p)
		}
	}
	walk(root, nil)
	if len(lines) < 80 {
		t.Fatalf("only %d command lines", len(lines))
	}
	if testing.Short() {
		rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		lines = lines[:len(lines)/2]
	}
	lines = append(lines, [][]string{
		{"show", "ann"}, {"explain", "ann"}, {"ps", "-o", "wide"}, {"ps", "--all"}, {"task", "show", "1"}, {"task", "history", "1"}, {"task", "ls", "--all"},
		{"approvals", "show", "1"}, {"approvals", "ls", "--all"}, {"inbox"}, {"inbox", "ann"}, {"message", "ls"}, {"thread", "ann"}, {"worktree", "status", "ann"},
		{"worktree", "diff", "ann"}, {"events"}, {"checkpoint", "take", "ann"}, {"checkpoint", "ls"}, {"task", "show", nasty}, {"show", nasty}, {"send", nasty, "x"},
		{"doctor"}, {"web", "ls"}, {"stop", "ann"}, {"delete", "--force"},
	}...)
	for _, args := range lines {
		out, err := r.try(append([]string{r.exe, "--team", "f"}, args...)...)
		if failed := (*runError)(nil); errors.As(err, &failed) {
			out += failed.stderr
		}
		for i, c := range out {
			if c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
				t.Errorf("teamctl %q shows %U: %q", args, c, out[max(0, i-60):min(len(out), i+20)])
				break
			}
		}
	}
	r.teamctl("create", "f", "--repo", "repo")
}
