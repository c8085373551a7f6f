package couriertest

import (
	"net"
	"sync"
	"testing"
)

// Relay forwards connections to a server. It can be frozen, which to its clients looks like a server
// that is stopped by a signal: it stays connected, takes what fits into buffers, and answers nothing.
type Relay struct {
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	thaw  chan struct{} // closed unless it is frozen
	conns map[net.Conn]bool
	ended bool
}

// NewRelay listens at an address of its own, for connections to another one of the same network. It
// ends with the test.
func NewRelay(t *testing.T, network, own, to string) *Relay {
	t.Helper()
	l, err := net.Listen(network, own)
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, thaw: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(r.thaw)
	r.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial(network, to)
			if err != nil {
				_ = c.Close()
				continue
			}
			if r.add(c, s) {
				r.done.Go(func() { r.forward(c, s) })
				r.done.Go(func() { r.forward(s, c) })
			}
		}
	})
	t.Cleanup(r.close)
	return r
}

// Addr is where the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Freeze keeps all bytes until Thaw.
func (r *Relay) Freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.thaw = make(chan struct{})
}

// Thaw ends a Freeze, if there is one.
func (r *Relay) Thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.thaw:
	default:
		close(r.thaw)
	}
}

func (r *Relay) add(both ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range both {
		if r.conns[c] = true; r.ended {
			_ = c.Close()
		}
	}
	return !r.ended
}

func (r *Relay) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		thaw := r.thaw
		r.mu.Unlock()
		<-thaw
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// close ends all connections, and a Freeze.
func (r *Relay) close() {
	_ = r.listener.Close()
	r.Thaw()
	r.mu.Lock()
	r.ended = true
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.done.Wait()
}
