package main

import (
	"context"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// readPane takes the lines that are typed in a member's own terminal, until stop is called. A line
// is a message of the person or a command of chat, but it approves nothing: whatever the member
// starts can write to that terminal as well. So commands have the rights of the member.
func (a *app) readPane(ctx context.Context, s *station, stdin io.Reader) (stop func()) {
	in, ok := stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return func() {}
	}
	// The terminal is opened once more: a read of the standard input cannot be ended, and would keep
	// a thread in a system call.
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return func() {} // it is not the terminal of this process
	}
	ctx, cancel := context.WithCancel(ctx)
	ch := &chat{app: a, in: tty, team: s.team, caller: s.caller, member: s.member, pane: true}
	var wg sync.WaitGroup
	wg.Go(func() { _ = ch.read(ctx) }) // the terminal's end ends it: the agent stays at work
	return func() {
		cancel()
		_ = tty.Close()
		wg.Wait()
	}
}
