package term

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"
)

// valid is a terminal that delivers only what the library can take: valid UTF-8, since its decoder
// never gets past any other byte; and nothing once it is held, since the library does not end while
// it has more input than its queues; and no keys of Windows terminals, which race in it with a change
// of the size. Invalid bytes are dropped.
type valid struct {
	tcell.Tty
	rest []byte // start of a character whose end was not read yet
	csi  csi    // how far a control sequence has come

	mu      sync.Mutex
	changed sync.Cond // of the following
	reading int       // calls of Read
	held    bool      // Read delivers nothing more
	drained bool      // Read ends
	failed  bool      // Read has failed, and is not called again
}

func newValid(line tcell.Tty) *valid {
	v := &valid{Tty: line}
	v.changed.L = &v.mu
	return v
}

// Start begins again after a Stop.
func (v *valid) Start() error {
	v.mu.Lock()
	v.held, v.drained, v.failed = false, false, false
	v.mu.Unlock()
	return v.Tty.Start()
}

// hold returns once the library waits for input, of which none comes until Drain ends the wait.
func (v *valid) hold() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = true
	for v.reading == 0 && !v.failed {
		v.changed.Wait()
	}
}

// Drain ends a Read.
func (v *valid) Drain() error {
	v.mu.Lock()
	v.drained = true
	v.changed.Broadcast()
	v.mu.Unlock()
	return v.Tty.Drain()
}

func (v *valid) Read(b []byte) (n int, err error) {
	v.mu.Lock()
	v.reading++
	v.changed.Broadcast()
	v.mu.Unlock()
	n, err = v.read(b)
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.held && !v.drained && err == nil {
		v.changed.Wait()
	}
	if v.held && err == nil {
		n, err = 0, io.EOF
	}
	v.reading--
	v.failed = v.failed || err != nil
	v.changed.Broadcast()
	return n, err
}

func (v *valid) read(b []byte) (int, error) {
	for {
		n := copy(b, v.rest)
		got, err := v.Tty.Read(b[n:])
		whole, rest := onlyValid(b[:n+got])
		v.rest = append(v.rest[:0], rest...)
		v.csi.noWinKeys(whole)
		if len(whole) > 0 || got == 0 || err != nil {
			return len(whole), err
		}
	}
}

// onlyValid returns the valid characters of b, which it moves together, and a last one that is
// incomplete.
func onlyValid(b []byte) (whole, rest []byte) {
	whole = b[:0]
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r != utf8.RuneError || size > 1:
			whole = append(whole, b[:size]...)
		case !utf8.FullRune(b):
			return whole, b
		}
		b = b[size:]
	}
	return whole, nil
}

// csi is how far a control sequence has come: nowhere, after ESC, after its introducer, within its
// parameters.
type csi int

const (
	noCSI csi = iota
	csiEscape
	csiBegun
	csiParams
)

// noWinKeys makes keys of Windows terminals (ESC [ ... _), which are not asked for, sequences without
// a meaning.
func (c *csi) noWinKeys(b []byte) {
	for i, x := range b {
		switch {
		case x == 0x1b:
			*c = csiEscape
		case *c == csiEscape && x == '[', x == 0x9b && i > 0 && b[i-1] == 0xc2: // the latter is one character
			*c = csiBegun
		case *c >= csiBegun && x >= 0x20 && x < 0x40:
			*c = csiParams
		default:
			if *c == csiParams && x == '_' {
				b[i] = 'g'
			}
			*c = noCSI
		}
	}
}
