package pty

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/unixsock"
	"github.com/teamctl/teamctl/team"
)

const (
	// clientMax limits the output queued for a client; a client that falls
	// further behind is dropped.
	clientMax = 1 << 20
	// clientWithin limits one write to a client.
	clientWithin = 10 * time.Second
	// helloWithin limits the time until a new client's hello. A client that is stopped by the load of
	// the machine between its connect and its hello is served.
	helloWithin = time.Minute
	// inputFrameMax limits the size of one frame from a client.
	inputFrameMax = 2 << 20
	clientsMax    = 64
)

// listen binds the socket, 0600. It requires mu, or that no other goroutine
// uses h yet.
func (h *host) listen() error {
	if h.launch.Socket == "" {
		return errors.New("launch.json names no socket")
	}
	if err := os.Remove(h.launch.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listen: %w", err)
	}
	ln, err := unixsock.Listen(h.launch.Socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(h.launch.Socket, 0o600); err != nil {
		_ = errors.Join(os.Remove(h.launch.Socket), ln.Close())
		return fmt.Errorf("listen: %w", err)
	}
	h.ln = ln
	return nil
}

// Relisten recreates the socket if it was removed (the shim's SIGUSR1).
func (h *host) Relisten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	old := h.ln
	if _, err := os.Lstat(h.launch.Socket); err == nil {
		return
	}
	if h.listen() != nil {
		return
	}
	_ = old.Close()
	h.accept(h.ln)
}

// accept serves a listener until it is closed.
func (h *host) accept(ln *unixsock.Listener) {
	h.serving.Go(func() {
		for {
			c, err := ln.Accept()
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors: the agent has priority
				t := time.NewTimer(lookAgain)
				<-t.C
				continue
			}
			h.admit(c)
		}
	})
}

func (h *host) admit(conn *os.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients) >= clientsMax || !samePeer(conn) {
		_ = conn.Close()
		return
	}
	c := &client{host: h, conn: conn, wake: make(chan struct{}, 1)}
	h.clients[c] = struct{}{}
	h.serving.Go(c.read)
	h.serving.Go(c.write)
}

// client is one connection. Everything but conn is guarded by host.mu.
type client struct {
	host *host
	conn *os.File
	wake chan struct{} // capacity 1

	role       string // "" before its hello
	cols, rows int
	out        []byte
	ending     bool // close once out is written
	gone       bool
}

// send queues a frame of the terminal's output. It requires mu.
func (c *client) send(k kind, p []byte) {
	if c.role != roleAttach && c.role != roleView || c.ending || c.gone {
		return
	}
	if len(c.out)+len(p)+headerSize > clientMax {
		c.drop()
		return
	}
	c.out = appendFrame(c.out, k, p)
	wakeUp(c.wake)
}

// finish queues the last frame. It requires mu.
func (c *client) finish(frame []byte) {
	if c.ending || c.gone {
		return
	}
	if c.role != "" && c.role != roleCall || frame[0] == byte(kindReply) {
		c.out = append(c.out, frame...)
	}
	c.ending = true
	wakeUp(c.wake)
}

// drop disconnects a client at once. It requires mu.
func (c *client) drop() {
	if c.gone {
		return
	}
	c.gone, c.out = true, nil
	_ = c.conn.Close()
	wakeUp(c.wake)
	h := c.host
	delete(h.clients, c)
	if h.active != c {
		return
	}
	h.active = nil
	for o := range h.clients { // some client must answer the program's queries
		if o.role == roleAttach {
			h.focus(o)
			return
		}
	}
}

// focus makes c the client that sets the size. It requires mu.
func (h *host) focus(c *client) {
	h.active = c
	_ = h.resize(c.cols, c.rows) // an impossible size leaves the old one
}

func (c *client) write() {
	var spare []byte
	for range c.wake {
		c.host.mu.Lock()
		out, ending, gone := c.out, c.ending, c.gone
		c.out = spare[:0]
		c.host.mu.Unlock()
		if gone {
			return
		}
		_ = c.conn.SetWriteDeadline(time.Now().Add(clientWithin))
		_, err := c.conn.Write(out)
		if err != nil || ending {
			c.host.mu.Lock()
			c.drop()
			c.host.mu.Unlock()
			return
		}
		spare = nil
		if cap(out) <= 64<<10 {
			spare = out
		}
	}
}

func (c *client) read() {
	f := frames{r: c.conn, max: inputFrameMax}
	_ = c.conn.SetReadDeadline(time.Now().Add(helloWithin))
	k, p, err := f.next()
	ok := err == nil && k == kindHello && c.greet(p)
	if ok {
		_ = c.conn.SetReadDeadline(time.Time{})
	}
	for ok {
		if k, p, err = f.next(); err != nil || !c.take(k, p) {
			break
		}
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if !c.ending { // otherwise write what is queued first
		c.drop()
	}
}

// greet processes a client's hello; false ends the connection.
func (c *client) greet(p []byte) bool {
	h := c.host
	var in hello
	if json.Unmarshal(p, &in) != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var refusal *team.Error
	switch {
	case in.Generation != "" && in.Generation != h.launch.Generation:
		refusal = team.Errorf(team.CodeNotFound, "generation %s has ended", in.Generation)
	case in.Version != protocolVersion:
		refusal = team.Errorf(team.CodeUnavailable, "the holder speaks version %d of the protocol, not %d", protocolVersion, in.Version).
			WithHint("teamctl restart " + h.launch.Agent)
	case in.Role != roleAttach && in.Role != roleView && in.Role != roleCall:
		refusal = team.Errorf(team.CodeInvalid, "unknown role %q", in.Role)
	}
	if refusal != nil {
		c.finish(appendJSON(nil, kindReply, reply{Error: refusal}))
		return false
	}
	c.role = in.Role
	if in.Role == roleCall {
		return true
	}
	if in.Role == roleAttach {
		c.cols, c.rows = orDefault(in.Cols, h.model.cols), orDefault(in.Rows, h.model.rows)
		h.focus(c)
	}
	c.out = appendJSON(c.out, kindHello, hello{
		Version: protocolVersion, Generation: h.launch.Generation, Agent: h.launch.Agent,
		Cols: h.model.cols, Rows: h.model.rows,
	})
	redraw := h.model.now().Redraw(historyLines)
	if len(redraw) > clientMax/2 { // leave room for output that arrives before it is written
		redraw = h.model.now().Redraw(0)
	}
	c.out = appendFrame(c.out, kindOutput, redraw)
	wakeUp(c.wake)
	return true
}

// take processes one frame; false ends the connection.
func (c *client) take(k kind, p []byte) bool {
	h := c.host
	switch k {
	case kindInput, kindResize:
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.role != roleAttach || c.gone {
			return true
		}
		if k == kindResize {
			cols, rows, err := parseSize(p)
			if err != nil {
				return false
			}
			c.cols, c.rows = orDefault(cols, c.cols), orDefault(rows, c.rows)
		}
		if h.active != c || k == kindResize {
			h.focus(c)
		}
		if k == kindInput {
			if _, _, err := h.input.put(p); err != nil {
				c.send(kindNotice, []byte("input dropped: "+err.Error()))
			}
		}
		return true
	case kindType, kindCapture, kindSize:
		r := h.answer(k, p)
		h.mu.Lock()
		defer h.mu.Unlock()
		c.finish(appendJSON(nil, kindReply, r))
		return false
	case kindDetach:
		return false
	default:
		return true // of a later version of the protocol
	}
}

// answer performs the request of a call.
func (h *host) answer(k kind, p []byte) (r reply) {
	var err error
	switch k {
	case kindType:
		err = h.typeText(p)
	case kindCapture:
		r.Text, err = h.capture(p)
	default:
		var in sizeIn
		if err = json.Unmarshal(p, &in); err == nil {
			h.mu.Lock()
			err = h.resize(in.Cols, in.Rows)
			h.mu.Unlock()
		}
	}
	if err != nil {
		r.Error = asError(err)
	}
	return r
}

func asError(err error) *team.Error {
	var e *team.Error
	if errors.As(err, &e) {
		return e
	}
	return team.Errorf(team.CodeOf(err), "%w", err)
}

func (h *host) capture(p []byte) (string, error) {
	var in captureIn
	if err := json.Unmarshal(p, &in); err != nil {
		return "", team.Errorf(team.CodeInvalid, "read the request: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	screen, history := h.model.now(), min(max(in.Scrollback, 0), historyLines)
	if in.Colors {
		return screen.Colored(history), nil
	}
	return screen.Text(history), nil
}

const (
	// lineMax is the maximum length of a line that a terminal in canonical mode
	// keeps.
	lineMax = 4095
	// typeWithin is how long a program may take to read what is typed.
	typeWithin = 5 * time.Second
)

// typeText types text like a paste by the user. It returns once the terminal
// has it.
func (h *host) typeText(p []byte) error {
	var in typeIn
	if err := json.Unmarshal(p, &in); err != nil {
		return team.Errorf(team.CodeInvalid, "read the request: %w", err)
	}
	text := plain.Clean(in.Text) // no sequence ends the bracketed paste, no character interrupts or submits
	if h.canonical() {
		for l := range strings.Lines(text) {
			if len(l) > lineMax {
				return team.Errorf(team.CodeLimit, "the program reads lines and would lose all but the first %d bytes of one", lineMax).
					WithHint("send it as a message")
			}
		}
	}
	h.mu.Lock()
	if text != "" && h.model.now().BracketedPaste() {
		text = "\x1b[200~" + text + "\x1b[201~"
	}
	h.mu.Unlock()
	text += backends.Keys[in.Key]
	if in.Enter {
		text += "\r"
	}
	from, to, err := h.input.put([]byte(text))
	switch {
	case errors.Is(err, errFull):
		return team.Errorf(team.CodeUnavailable, "%w", err).WithReason(team.ReasonNotRead)
	case err != nil:
		return team.Errorf(team.CodeNotFound, "it has exited")
	}
	return h.typedUntil(from, to)
}

func (h *host) typedUntil(from, to int64) error {
	t := time.NewTimer(typeWithin)
	defer t.Stop()
	for {
		ok, moved := h.input.passed(to)
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-h.draining:
			return team.Errorf(team.CodeNotFound, "it has exited")
		case <-t.C:
			if ok, _ := h.input.passed(to); ok { // too, if this process did not run
				return nil
			}
			if h.input.withdraw(from, to) {
				return team.Errorf(team.CodeTimeout, "the program does not read its terminal: nothing was typed").WithReason(team.ReasonNotRead)
			}
			return team.Errorf(team.CodeTimeout, "the program does not read its terminal: the text is queued there").WithReason(team.ReasonQueued)
		}
	}
}

// canonical reports whether the terminal is in canonical mode, in which it
// returns whole lines.
func (h *host) canonical() bool {
	rc, err := h.master.SyscallConn()
	if err != nil {
		return false
	}
	var t *unix.Termios
	if cerr := rc.Control(func(fd uintptr) { t, err = unix.IoctlGetTermios(int(fd), getTermios) }); cerr != nil || err != nil {
		return false
	}
	return t.Lflag&unix.ICANON != 0
}
