package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/unixsock"
	"github.com/teamctl/teamctl/team"
)

// Events of a notification.
const (
	EventUp     = "up"
	EventExited = "exited"
	EventReady  = "ready"
	EventSeen   = "seen" // with an observation of a hook of the agent
)

// Event is the content of a datagram.
type Event struct {
	Agent      string `json:"agent"`
	Generation string `json:"generation"`
	Event      string `json:"event"`
	// Data belongs to EventSeen: an observation.
	Data json.RawMessage `json:"data,omitempty"`
}

// Notify sends one event to the socket. A listener that has exited or does not
// read costs at most half a second, and is an error that may be ignored.
func Notify(socket, agent, gen, event string) error {
	return Send(socket, Event{Agent: agent, Generation: gen, Event: event})
}

// maxEvent is the maximum length of a datagram.
const maxEvent = 32 * 1024

// sendWithin limits the wait for a listener that does not read.
const sendWithin = 500 * time.Millisecond

// Send is Notify for an event with data; one that is too long is CodeLimit.
func Send(socket string, e Event) error {
	b, err := json.Marshal(e)
	if err == nil && len(b) > maxEvent {
		return team.Errorf(team.CodeLimit, "notify: an event of %d bytes", len(b))
	}
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	// Do not use unixsock: its poller would stay in the shim's memory.
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	limit := unix.NsecToTimeval(sendWithin.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	// With a time limit the kernel does not restart the call after a signal,
	// and Go's own scheduler sends signals.
	for began := time.Now(); ; {
		err = unix.Sendto(fd, b, 0, &unix.SockaddrUnix{Name: socket})
		if !errors.Is(err, unix.EINTR) || time.Since(began) > sendWithin {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("notify %s: %w", socket, err)
	}
	return nil
}

// Notifier receives events in the supervisor.
type Notifier struct {
	path string
	done sync.WaitGroup

	mu     sync.Mutex
	conn   *os.File
	subs   map[*subscription]struct{}
	closed bool
}

type subscription struct {
	agent, gen string
	c          chan Event
}

// Listen binds the socket with mode 0600 in a directory with mode 0700,
// replacing a dead one: the caller holds the lock that makes it the only
// listener.
func Listen(path string) (*Notifier, error) {
	if len(path) > 107 {
		return nil, team.Errorf(team.CodeInvalid, "socket path %s is longer than 107 bytes", path).
			WithHint("set " + team.EnvRuntime + " to a short directory")
	}
	conn, err := bind(path)
	if err != nil {
		return nil, err
	}
	n := &Notifier{path: path, conn: conn, subs: map[*subscription]struct{}{}}
	n.done.Go(func() { n.read(conn) })
	return n, nil
}

func bind(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for notifications: %w", err)
	}
	conn, err := unixsock.ListenDatagram(path)
	if err != nil {
		return nil, fmt.Errorf("listen for notifications: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("listen for notifications: %w", err)
	}
	return conn, nil
}

// Look recreates the socket if it was deleted: datagrams sent until then are
// lost, and their senders get an error. It reports whether that was necessary.
func (n *Notifier) Look() (renewed bool, err error) {
	if _, err := os.Lstat(n.path); !errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false, nil
	}
	conn, err := bind(n.path)
	if err != nil {
		return false, err
	}
	old := n.conn
	n.conn = conn
	n.done.Go(func() { n.read(conn) })
	return true, old.Close() // its reader ends by itself
}

// Path is the socket's path.
func (n *Notifier) Path() string { return n.path }

// Subscribe returns the events of one agent and generation; an empty value
// matches all. The channel keeps the latest events for a slow reader (it drops
// the oldest, because events are hints) and is closed by cancel and by Close.
func (n *Notifier) Subscribe(agent, gen string) (events <-chan Event, cancel func()) {
	s := &subscription{agent: agent, gen: gen, c: make(chan Event, 64)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		close(s.c)
		return s.c, func() {}
	}
	n.subs[s] = struct{}{}
	return s.c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if _, ok := n.subs[s]; ok {
			delete(n.subs, s)
			close(s.c)
		}
	}
}

func (n *Notifier) read(conn *os.File) {
	buf := make([]byte, maxEvent)
	for {
		k, err := conn.Read(buf)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return
			}
			continue
		}
		var e Event
		if json.Unmarshal(buf[:k], &e) != nil || e.Event == "" {
			continue // any process of this user may write to the socket
		}
		n.publish(e)
	}
}

func (n *Notifier) publish(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subs {
		if s.agent != "" && s.agent != e.Agent || s.gen != "" && s.gen != e.Generation {
			continue
		}
		for sent := false; !sent; {
			select {
			case s.c <- e:
				sent = true
			default:
				select {
				case <-s.c:
				default:
				}
			}
		}
	}
}

// Close stops listening and removes the socket.
func (n *Notifier) Close() error {
	n.mu.Lock()
	again := n.closed
	n.closed = true
	conn := n.conn
	n.mu.Unlock()
	if again {
		return nil
	}
	err := os.Remove(n.path) // before another process can bind there: the caller still holds the lock
	if cerr := conn.Close(); err == nil || errors.Is(err, os.ErrNotExist) {
		err = cerr
	}
	n.done.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subs {
		close(s.c)
	}
	n.subs = nil
	return err
}
