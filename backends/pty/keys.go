package pty

import (
	"bytes"
	"fmt"
)

// keys finds the prefix in the user's input. If its program has requested it, a
// terminal sends keys as sequences, which are recognised too.
type keys struct {
	prefix  byte
	pending bool // the prefix was typed
}

// feed returns the input for the program.
func (k *keys) feed(p []byte) (out []byte, detach bool) {
	for len(p) > 0 {
		n, b := k.key(p)
		key := p[:n]
		p = p[n:]
		if !k.pending {
			if b == k.prefix {
				k.pending = true
			} else {
				out = append(out, key...)
			}
			continue
		}
		k.pending = false
		switch b {
		case 'd', 'D':
			return out, true
		case k.prefix:
			out = append(out, key...)
		default: // not an attach command: the program gets both
			out = append(append(out, k.prefix), key...)
		}
	}
	return out, false
}

// key returns the length of the first key and the byte that a plain terminal
// would send for it, as far as it matters to keys.
func (k *keys) key(p []byte) (n int, b byte) {
	if p[0] != 0x1b {
		return 1, p[0]
	}
	for _, c := range []struct {
		key  rune
		ctrl bool
		b    byte
	}{{rune(k.prefix) + 0x60, true, k.prefix}, {'d', false, 'd'}} {
		mod := ""
		if c.ctrl {
			mod = ";5"
		}
		forms := []string{fmt.Sprintf("\x1b[%d%su", c.key, mod), fmt.Sprintf("\x1b[%d%s:1u", c.key, mod)}
		if c.ctrl {
			forms = append(forms, fmt.Sprintf("\x1b[27;5;%d~", c.key))
		}
		for _, f := range forms {
			if bytes.HasPrefix(p, []byte(f)) {
				return len(f), c.b
			}
		}
	}
	return 1, p[0]
}
