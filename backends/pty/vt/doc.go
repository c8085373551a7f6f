// Package vt is a terminal without a window: it reads what a program writes to an
// xterm and knows what the screen shows, so that somebody who looks later sees the
// same. It is small because one lives for every agent: a cell is eight bytes, a
// line of history is as long as its text.
//
// What it models: the primary and the alternate screen, history of the primary
// one, the pen (SGR with 256 and direct colours), margins, tabs, wide and
// combining characters, DEC graphics, and every mode that a client's terminal must
// be put into (cursor keys, mouse, bracketed paste, keyboard protocols, ...). What it
// does not: left and right margins, images, double-size lines, reflow at a resize
// (xterm does not do that either), blinking, hyperlinks.
//
// Screen interprets, Redraw says it again as a stream for another terminal, Text
// as plain lines. Scanner finds the questions in a stream that a terminal would
// answer ("where is your cursor?"): exactly one of those who look must answer, and
// Screen.Answer does when nobody looks.
package vt
