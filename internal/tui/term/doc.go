// Package term is the terminal of the full screen: it alone knows the terminal library.
//
// It takes whole frames, lines of text with colours (SGR), and writes what differs from
// the frame before. One goroutine writes, and always the newest frame: a terminal that does
// not drain gets frames left out, never a queue. What a person does comes as Events, in
// order; a paste comes as one. Nothing runs while nothing happens.
package term
