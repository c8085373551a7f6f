// Package run runs a user's command to its end, and ends everything that it has
// started: otherwise processes left behind would outlive its time limit.
//
// The command runs with bash, in a session of its own and without a terminal: a
// program that prompts on /dev/tty fails at once. Its processes have a
// generation in their environment and, if they are given one, stay in a control
// group, so all of them are found however they hide (see package proc). The
// root process ends with the program that runs it, however that ends; what the
// root leaves then is ended by the process that finds the generation (End).
//
// A Book has one record for each running command of a team, with its
// generation, its control group and the process that runs it. The record exists
// before the command starts and is removed after all of its processes have
// ended. A record whose process has exited therefore belongs to an interrupted
// command, and Book.Sweep ends what it left.
package run
