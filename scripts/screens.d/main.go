// Screens plays the team that docs/screens shows, with stand-ins of the agent programs in tmux,
// and writes what the screens read of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/strays"
)

func main() {
	if status, ok := fakecli.Main(os.Args); ok {
		os.Exit(status)
	}
	out := flag.String("o", "", "file to write; without it standard output")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "screens:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "tc-screens-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exe, err := strays.Program(dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	day, err := play(ctx, exe, self, dir)
	if err != nil {
		return err
	}
	b, err := encode(day)
	if err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.Write(b)
		return err
	}
	return os.WriteFile(out, b, 0o644)
}
