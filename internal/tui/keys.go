package tui

import (
	"context"
	"errors"
	"io"

	"github.com/muesli/cancelreader"
)

// key is what a person pressed.
type key int

const (
	keyQuit key = iota
	keyEnd      // the end of the input
	keyDown
	keyUp
	keyPageDown
	keyPageUp
	keyTop
	keyBottom
)

// keys are the sequences that terminals send for each key.
var keys = map[string]key{
	"q": keyQuit, "Q": keyQuit, "\x03": keyQuit,
	"j": keyDown, "\x1b[B": keyDown, "\x1bOB": keyDown,
	"k": keyUp, "\x1b[A": keyUp, "\x1bOA": keyUp,
	" ": keyPageDown, "\x04": keyPageDown, "\x1b[6~": keyPageDown,
	"\x15": keyPageUp, "\x1b[5~": keyPageUp,
	"g": keyTop, "\x1b[H": keyTop, "\x1b[1~": keyTop,
	"G": keyBottom, "\x1b[F": keyBottom, "\x1b[4~": keyBottom,
}

// scrolled is the first line that is shown after the key, of lines, page of which fit.
func (k key) scrolled(top, page, lines int) int {
	switch k {
	case keyDown:
		top++
	case keyUp:
		top--
	case keyPageDown:
		top += page
	case keyPageUp:
		top -= page
	case keyTop:
		top = 0
	case keyBottom:
		top = lines
	case keyQuit, keyEnd:
	}
	return max(0, min(top, lines-page-1))
}

// readKeys sends what is pressed until the input ends, which is keyEnd. An escape
// sequence comes in one read; one that is not known is nothing.
func readKeys(ctx context.Context, in io.Reader, pressed chan<- key) {
	send := func(k key) bool {
		select {
		case pressed <- k:
			return true
		case <-ctx.Done():
			return false
		}
	}
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for rest := string(buf[:n]); rest != ""; {
			k, size, ok := next(rest)
			if rest = rest[size:]; ok && !send(k) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, cancelreader.ErrCanceled) {
				send(keyEnd)
			}
			return
		}
	}
}

// next is the key at the beginning of what was read, and its length.
func next(s string) (k key, size int, ok bool) {
	size = 1
	if len(s) > 1 && s[0] == '\x1b' {
		for size = 2; size < len(s) && (size == 2 || s[size-1] < '@' || s[size-1] > '~'); size++ {
			if s[1] != '[' && s[1] != 'O' {
				break
			}
		}
	}
	k, ok = keys[s[:size]]
	return k, size, ok
}
