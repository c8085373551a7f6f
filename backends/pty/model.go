package pty

import (
	"bytes"

	"github.com/teamctl/teamctl/backends/pty/vt"
)

const (
	// historyLines is the number of lines kept above the screen.
	historyLines = 1000
	// pendingMax is the maximum amount of output not yet interpreted.
	// Interpreting it at once would halve the speed of a flood, and cost an
	// agent with little output the memory of a screen.
	pendingMax = 256 << 10
)

// model is the contents of the screen, interpreted on demand.
type model struct {
	cols, rows int
	screen     *vt.Screen // nil until it is needed
	pending    []byte
}

func (m *model) write(p []byte) {
	m.pending = append(m.pending, p...)
	if len(m.pending) >= pendingMax {
		m.now()
	}
}

// now returns the screen after everything that was written.
func (m *model) now() *vt.Screen {
	if m.screen == nil {
		m.screen = vt.New(m.cols, m.rows, historyLines)
	}
	if len(m.pending) > 0 {
		p := m.pending
		if len(p) >= pendingMax {
			p = m.skip(p)
		}
		_, _ = m.screen.Write(p)
		m.pending = m.pending[:0]
	}
	return m.screen
}

// skip removes from a flood of plain lines those that neither the screen nor
// the history will show, and returns the rest.
func (m *model) skip(p []byte) []byte {
	plain := p
	for _, c := range []byte{0x1b, 0x0e, 0x0f} {
		if i := bytes.LastIndexByte(plain, c); i >= 0 {
			plain = plain[i+1:]
		}
	}
	// Start at the beginning of a line, whatever the sequence was.
	i := bytes.Index(plain, []byte("\r\n"))
	if i < 0 {
		return p
	}
	plain = plain[i+2:]
	rest := len(plain)
	for range m.rows + historyLines + 1 {
		rest = bytes.LastIndexByte(plain[:rest], '\n')
		if rest < 1 {
			return p
		}
	}
	if plain[rest-1] != '\r' || bytes.Count(plain[:rest], []byte{'\n'}) <= m.rows {
		return p
	}
	_, _ = m.screen.Write(p[:len(p)-len(plain)])
	if !m.screen.Scrolled() {
		return plain
	}
	return plain[rest+1:]
}

func (m *model) resize(cols, rows int) {
	if m.screen != nil || len(m.pending) > 0 {
		m.now().Resize(cols, rows)
	}
	m.cols, m.rows = cols, rows
}
