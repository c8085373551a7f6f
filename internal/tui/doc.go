// Package tui draws what a team does, and is the hand of a person on it. UI is the full
// screen; Progress is the live view of "wait --progress"; Board is printed once. All draw
// a view.Snapshot, and act, if at all, through the interfaces of package view: the package
// knows no ledger, process or file.
//
// # The full screen
//
// One goroutine owns the model, which is everything that is on the screen. What comes in
// (keys, snapshots, what was read beside them) changes it, and draw makes a frame of it, a
// pure function that golden tests hold. Package term paints the frame. Reads and deeds run
// beside the loop and come back as changes. Nothing runs at rest: ages of less than a
// minute are drawn once a second, older ones once a minute, and none while the terminal
// has no focus.
//
// An answer is what a person saw, see guard: it names the hash of the request that was
// painted as a whole, counts only if that has stood there for 0.4 s, and not if it came in
// a burst of keys. Rows keep their places for two seconds after a key.
//
// Names, subjects, requests, screens and diffs come from agents. Clean takes every control
// character out of them and Escape shows it, so that none can move the cursor, set a
// colour, leave its box or be mistaken for a need.
package tui
