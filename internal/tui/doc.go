// Package tui draws what a team does, read-only: Progress is the live view of
// "wait --progress", Board the full screen of "board". Both draw a view.Snapshot, which
// the caller makes from whatever it reads; the package knows no ledger.
//
// Drawing is a pure function of snapshot, size and time (golden-tested); only
// Progress and Screen write. They write when a snapshot comes, when the terminal
// changes its size, and once a second while a task runs, because its elapsed time
// is on the screen. At rest they do nothing: that is why this is plain ANSI and no
// framework with a frame clock.
//
// Names, subjects and notes come from agents. Clean takes every control character
// out of them, so that none can move the cursor or recolour the screen.
package tui
