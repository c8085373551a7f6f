package pty

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// kind is the kind of a frame; doc.go lists them.
type kind byte

const (
	kindHello   kind = 'H'
	kindInput   kind = 'I'
	kindResize  kind = 'W'
	kindType    kind = 'T'
	kindCapture kind = 'C'
	kindSize    kind = 'S'
	kindDetach  kind = 'D'
	kindOutput  kind = 'O'
	kindNotice  kind = 'N'
	kindExit    kind = 'X'
	kindReply   kind = 'R'
)

const (
	protocolVersion = 1
	headerSize      = 5
	// frameMax limits the length that a peer may announce. The largest frame is
	// a redraw with the complete history.
	frameMax = 16 << 20
)

// Roles of a client.
const (
	roleAttach = "attach" // types and sets the size
	roleView   = "view"   // only watches
	roleCall   = "call"   // makes one request
)

type hello struct {
	Version    int    `json:"version"`
	Generation string `json:"generation"` // from a client: "" matches any
	Agent      string `json:"agent,omitempty"`
	Role       string `json:"role,omitempty"`
	Cols       int    `json:"cols"`
	Rows       int    `json:"rows"`
}

type typeIn struct {
	Text  string `json:"text"`
	Enter bool   `json:"enter"`
	Key   string `json:"key,omitempty"` // one of backends.Keys, sent after the text
}

type captureIn struct {
	Scrollback int  `json:"scrollback"`
	Colors     bool `json:"colors,omitempty"`
}

type sizeIn struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

type reply struct {
	Error *team.Error `json:"error,omitempty"`
	Text  string      `json:"text,omitempty"`
}

func appendFrame(b []byte, k kind, payload []byte) []byte {
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

func appendJSON(b []byte, k kind, v any) []byte {
	p, err := json.Marshal(v)
	if err != nil { // only plain structs are passed, so this cannot happen; do not ignore it
		p = []byte("null")
	}
	return appendFrame(b, k, p)
}

func appendSize(b []byte, cols, rows int) []byte {
	var p [4]byte
	binary.BigEndian.PutUint16(p[:2], uint16(min(max(cols, 0), 65535)))
	binary.BigEndian.PutUint16(p[2:], uint16(min(max(rows, 0), 65535)))
	return appendFrame(b, kindResize, p[:])
}

func parseSize(p []byte) (cols, rows int, err error) {
	if len(p) != 4 {
		return 0, 0, fmt.Errorf("a size of %d bytes", len(p))
	}
	return int(binary.BigEndian.Uint16(p)), int(binary.BigEndian.Uint16(p[2:])), nil
}

// frames reads frames one after the other; a payload is valid until the next
// call.
type frames struct {
	r   io.Reader
	max int
	buf []byte
}

func (f *frames) next() (kind, []byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(h[1:]))
	if n > f.max {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if cap(f.buf) < n {
		f.buf = make([]byte, n)
	}
	f.buf = f.buf[:n]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		return 0, nil, err
	}
	return kind(h[0]), f.buf, nil
}

// parseExit parses an exit frame.
func parseExit(p []byte) (backends.Exit, error) {
	var e backends.Exit
	if err := json.Unmarshal(p, &e); err != nil {
		return e, fmt.Errorf("read the exit: %w", err)
	}
	return e, nil
}
