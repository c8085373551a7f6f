package pty

import (
	"bytes"
	"fmt"
)

// keys finds the prefix in what a person types. A terminal whose program has asked
// for it sends keys as sequences: those count too.
type keys struct {
	prefix  byte
	pending bool // the prefix was typed
}

// feed returns what goes to the program.
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
		default: // no command of ours: the program gets both
			out = append(append(out, k.prefix), key...)
		}
	}
	return out, false
}

// key measures the first key and says which byte a plain terminal would send for
// it, as far as that matters here.
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
