// Command teamctl runs a team of coding agents on one machine. Every member is a supervised process
// in its own tmux pane, with its own git worktree; the team shares a task ledger and one mailbox per
// member.
//
//	teamctl create demo --repo .
//	teamctl spawn builder
//	teamctl task add "vet" --run 'go vet ./...'
//	teamctl wait --progress
//
// main wires the packages together. Each verb is a file of its own with its command as data at the
// top; output.go has all output for people.
package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/gitenv"
	"github.com/teamctl/teamctl/internal/uniproc"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit. The shim comes before everything else: there is one per agent, so
// it must stay small.
func run(args []string) int { return runIn(context.Background(), args) }

// runIn is run with a context.
func runIn(ctx context.Context, args []string) int {
	if len(args) > 0 && args[0] == "shim" {
		if len(args) == 1 || args[1] != bundle.StepHook {
			return shim.Main(args[1:], pty.Host())
		}
		args = args[1:] // of a small program of another version
	}
	leaveGit()
	if !brief(args) {
		uniproc.Release()
	}
	a := &app{out: newOutput(os.Stdout, os.Stderr, wantsJSON(args)), stdin: os.Stdin}
	if len(args) > 0 && args[0] == "acp" {
		return a.run(ctx, args) // which handles interrupts itself
	}
	// Signals stay caught until the exit: otherwise one that arrives after the work is done would
	// make the command look interrupted.
	ctx, _ = a.signals(ctx)
	return a.run(ctx, args)
}

// leaveGit takes out of the environment what git has set for a hook or an alias that calls
// teamctl: everything that this process starts works elsewhere. A process of a member keeps what
// the member was given.
func leaveGit() {
	env := os.Environ()
	if control.OriginOf(env) == control.FromMember {
		return
	}
	kept := gitenv.Without(env)
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, kv) {
			_ = os.Unsetenv(name) // fails on names without a character only
		}
	}
}
