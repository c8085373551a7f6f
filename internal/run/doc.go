// Package run runs a command of a person to its end, and ends everything that it has
// started: what stays behind would outlive its time limit.
//
// The command runs with bash, in a session of its own and without a terminal: what asks
// at /dev/tty fails at once. Its processes carry a generation in their environment and,
// where they are given one, stay in a control group, so all of them are found whatever
// they do to hide (see package proc). The root ends with the program that runs it,
// whatever ends that; what the root leaves then is ended by whoever finds the
// generation (End).
package run
