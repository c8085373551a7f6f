// Package term is the terminal of the full screen; no other package knows one. It accepts whole
// frames, lines of text with colours (SGR), and writes the difference to the previous frame. One
// goroutine writes, and always the newest frame: a slow terminal skips frames and never queues
// them. Input comes as Events, in order; a paste is one Event. Nothing runs while nothing happens.
package term
