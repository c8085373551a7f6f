// Package tui draws a team's activity and lets a person act on it. UI is the full screen; Progress is
// the live view of "wait --progress"; Board is printed once. All draw a view.Snapshot, and act only
// through the interfaces of package view: the package knows no ledger, process or file.
//
// # The full screen
//
// One goroutine owns the model, which has everything on the screen. Input (keys, snapshots, data read
// in addition) changes it, and draw makes a frame from it, a pure function covered by golden tests.
// Package term paints the frame. Reads and deeds run beside the loop and return as changes. Nothing
// runs at rest: ages of less than a minute are redrawn once a second, older ones once a minute, and
// none while the terminal has no focus.
//
// An answer applies to what the person saw, see guard: it names the hash of the request that was
// painted as a whole. It counts only if the request has been visible for 0.4 s, and not if it came
// in a burst of keys. Rows keep their places for two seconds after a key.
//
// Names, subjects, requests, screens and diffs come from agents. Clean removes every control
// character and Escape makes it visible, so that none can move the cursor, set a colour, leave its
// box or look like a need.
package tui
