// Package run runs a command of a person to its end, and ends everything that it has
// started: what stays behind would outlive its time limit.
//
// The command runs with bash, in a session of its own and without a terminal: what asks
// at /dev/tty fails at once. Its processes carry a generation in their environment and,
// where they are given one, stay in a control group, so all of them are found whatever
// they do to hide (see package proc). The root ends with the program that runs it,
// whatever ends that; what the root leaves then is ended by whoever finds the
// generation (End).
//
// A Book has one record for each command of a team that is running, with its
// generation, its control group and the process that runs it. The record is there
// before the command starts and is removed after all of its processes have ended. A
// record whose process is gone is therefore a command that was cut short, and
// Book.Sweep ends what it left.
package run
