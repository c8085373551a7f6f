// Package vt is a terminal emulator without a window: it interprets what a
// program writes to an xterm and maintains the contents of the screen, so that
// a client that attaches later sees the same. It is small because there is one
// per agent: a cell takes eight bytes, a line of history as much as its text.
//
// It models the primary and the alternate screen, history of the primary one,
// the pen (SGR with 256 and direct colours), margins, tabs, wide and combining
// characters, DEC graphics, and every mode that must be set in a client's
// terminal (cursor keys, mouse, bracketed paste, keyboard protocols, ...). It
// does not model left and right margins, images, double-size lines, reflow on
// resize (neither does xterm), blinking and hyperlinks.
//
// Screen interprets the output, Redraw reproduces it as a stream for another
// terminal, Text as plain lines. Scanner finds the queries in a stream that a
// terminal would answer (such as the position of the cursor): exactly one
// attached client must answer, and Screen.Answer does so if there is none.
package vt
