package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
)

// streams are the connections that have left HTTP for one protocol of frames. http.Server
// forgets them, so what it does at the end is done here.
type streams struct {
	protocol string
	frames   framer
	keeper   *keeper // nil: every ledger will do

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	done   sync.WaitGroup
}

// ServeHTTP takes the connection over and serves it until either side leaves.
func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != s.protocol {
		http.Error(w, "upgrade to "+s.protocol, http.StatusUpgradeRequired)
		return
	}
	if err := s.keeper.check(r.Header.Get(ledgerHeader)); err != nil {
		w.WriteHeader(statusOf(team.CodeOf(err)))
		_ = json.NewEncoder(w).Encode(errorOf(err))
		return
	}
	rc := http.NewResponseController(w)
	conn, rw, err := rc.Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	if !s.enter(conn) {
		return
	}
	defer s.leave(conn)
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", s.protocol); err != nil {
		return
	}
	// A request that has come is carried out and answered even when the server is going
	// down.
	ctx := context.WithoutCancel(r.Context())
	var out []byte
	for {
		frame, err := readFrame(rw.Reader)
		if err != nil {
			return
		}
		res, err := s.frames.answer(ctx, frame)
		if errors.Is(err, errFrame) {
			return
		}
		out = appendAnswer(out[:0], res, err)
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func (s *streams) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	s.done.Add(1)
	return true
}

func (s *streams) leave(c net.Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.done.Done()
}

// close ends all connections after the current operations are answered; a client that does not
// take its answer within wait loses it.
func (s *streams) close(wait time.Duration) {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		_ = c.SetWriteDeadline(time.Now().Add(wait))
	}
	s.mu.Unlock()
	s.done.Wait()
}
