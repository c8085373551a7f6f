package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Each driver reads the completion script of its shell and prints the shell's suggestions for its
// arguments, one per line, without descriptions.
const (
	// Replaces a function of the bash-completion package, which the script calls to get the
	// words.
	bashDriver = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
source "$SCRIPT"
complete -p teamctl >/dev/null || exit 9
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMP_KEY=9
__start_teamctl 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
`
	// _describe belongs to the completion system of zsh, which needs the line editor. This one
	// prints the matching suggestions.
	zshDriver = `
compdef() { : }
_describe() {
	local a list
	for a in "$@"; do [[ $a == completions ]] && list=("${(@P)a}"); done
	list=("${(@)list%%:*}")
	print -l -- "${(@M)list:#${words[CURRENT]}*}"
}
_arguments() { : }
source "$SCRIPT"
words=("$@") CURRENT=$#
_teamctl
`
	fishDriver = `
source $SCRIPT
complete -C "$argv" | string replace -r '\t.*' ''
true
`
)

// TestCompletionScripts checks the scripts of docs completions in the installed shells: nouns,
// verbs, flags, and contents of a ledger.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tc") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(endAll(dir), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	exe, err := exec.LookPath("teamctl") // a completion starts it several times
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "teamctl")); err != nil {
		t.Fatal(err)
	}
	scripts := filepath.Join(dir, "completions")
	env := []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "ZDOTDIR=" + dir,
		team.EnvHome + "=" + filepath.Join(dir, "h"), team.EnvRuntime + "=" + filepath.Join(dir, "r"),
	}
	run := func(t *testing.T, name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, out)
		}
		return string(out)
	}
	run(t, filepath.Join(dir, "teamctl"), "docs", "completions", scripts)
	run(t, filepath.Join(dir, "teamctl"), "create", "demo")
	run(t, filepath.Join(dir, "teamctl"), "task", "add", "first thing")
	run(t, filepath.Join(dir, "teamctl"), "task", "add", "second: thing")

	for _, s := range []struct {
		shell, script string
		argv          func(line []string) []string
	}{
		{"bash", "teamctl.bash", func(line []string) []string {
			return append([]string{"--norc", "--noprofile", "-c", bashDriver, "bash"}, line...)
		}},
		{"zsh", "_teamctl", func(line []string) []string { return append([]string{"-f", "-c", zshDriver, "zsh"}, line...) }},
		{"fish", "teamctl.fish", func(line []string) []string {
			return []string{"--no-config", "-c", fishDriver, strings.Join(line, " ")}
		}},
	} {
		t.Run(s.shell, func(t *testing.T) {
			if _, err := exec.LookPath(s.shell); err != nil {
				t.Skipf("%s is not installed", s.shell)
			}
			env := append(slices.Clone(env), "SCRIPT="+filepath.Join(scripts, s.script))
			for line, want := range map[string][]string{
				"teamctl sp":                 {"spawn"},
				"teamctl member re":          {"recover", "rename", "restart", "resume"},
				"teamctl spawn x --backe":    {"--backend"},
				"teamctl ps --team ":         {"demo"},
				"teamctl task show ":         {"1", "2"},
				"teamctl mcp config op":      {"opencode"},
				"teamctl call TeamCr":        {"TeamCreate"},
				"teamctl ps -o j":            {"json", "jsonl"},
				"teamctl ps --no-such-verb-": {},
			} {
				argv := s.argv(strings.Split(line, " "))
				cmd := exec.CommandContext(t.Context(), s.shell, argv...)
				cmd.Env, cmd.Dir = env, dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
					continue
				}
				got := []string{}
				for l := range strings.Lines(string(out)) {
					if word := firstWord(l); word != "" { // the rest of the line is the description
						got = append(got, word)
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%q offers %q, want %q", line, got, want)
				}
			}
		})
	}
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}
