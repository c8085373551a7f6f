package control

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/ledger"
)

const (
	// gatherStep and gatherMost bound the wait for the writers of the last batch: they were
	// answered together and return together. Committed separately they fall into halves, with twice
	// as many commits.
	gatherStep = 60 * time.Microsecond
	gatherMost = 3 * gatherStep
	// pumpBuffer is the size of a connection's read buffer; a longer operation gets a larger one,
	// only while it lasts.
	pumpBuffer = 4 << 10
)

// pump carries the operations of all connections on one goroutine: all input that can be
// read becomes one batch, which is committed and answered before the next. With a
// goroutine for each connection most of a claim's cost was switching between them.
//
// The goroutine waits on an epoll descriptor of its own, which the runtime watches in
// turn: it holds no thread while nothing happens.
type pump struct {
	writer batcher
	poll   *os.File // the epoll descriptor
	raw    syscall.RawConn
	done   chan struct{}

	mu      sync.Mutex
	conns   map[int32]*pumped
	leaving bool
	grace   time.Duration // for the last answers

	// The following fields belong to run.
	events   []unix.EpollEvent
	ops      []ledger.Op // the batch
	from     []*pumped   // who sent each
	expected int         // how many the next batch may have
}

// pumped is a connection that the pump serves. It is not read from while it waits
// for answers, nor while it does not take them.
type pumped struct {
	fd      int
	in      []byte // what was read; used of it became operations
	used    int
	pending int // operations of the batch
	out     []byte
	blocked bool // out waits to be taken
	bad     bool // nothing that follows can be understood
}

// newPump starts a pump.
func newPump(w batcher) (*pump, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	p := &pump{writer: w, poll: os.NewFile(uintptr(fd), "operations"), done: make(chan struct{}),
		conns: map[int32]*pumped{}, events: make([]unix.EpollEvent, 128)}
	// Only what the runtime watches has deadlines.
	if err := p.poll.SetReadDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, p.poll.Close())
	}
	if p.raw, err = p.poll.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.poll.Close())
	}
	go p.run()
	return p, nil
}

// add takes over a connection, which the caller closes for himself, and what was read
// from it already. It returns false when the pump is leaving.
func (p *pump) add(conn net.Conn, already []byte) bool {
	fd, err := dupOf(conn)
	if err != nil {
		return false
	}
	c := &pumped{fd: fd, in: append(make([]byte, 0, max(pumpBuffer, len(already))), already...)}
	want := uint32(unix.EPOLLIN)
	if len(already) > 0 {
		want |= unix.EPOLLOUT // it is looked at, though nothing new may come
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		_ = unix.Close(fd)
		return false
	}
	if p.control(unix.EPOLL_CTL_ADD, fd, want) != nil {
		_ = unix.Close(fd)
		return false
	}
	p.conns[int32(fd)] = c
	return true
}

// dupOf is a descriptor of a connection that the runtime does not watch.
func dupOf(conn net.Conn) (fd int, err error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return -1, errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	if err := raw.Control(func(have uintptr) {
		fd, dupErr = unix.FcntlInt(have, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	return fd, dupErr
}

// control changes what is watched of a connection.
func (p *pump) control(how, fd int, want uint32) (err error) {
	ctlErr := p.raw.Control(func(epfd uintptr) {
		err = unix.EpollCtl(int(epfd), how, fd, &unix.EpollEvent{Events: want, Fd: int32(fd)})
	})
	return errors.Join(ctlErr, err)
}

// close ends all connections after the current operations are answered; a client that does not
// take its answer within wait loses it.
func (p *pump) close(wait time.Duration) {
	p.mu.Lock()
	first := !p.leaving
	if first {
		p.leaving, p.grace = true, wait
	}
	p.mu.Unlock()
	if first {
		_ = p.poll.SetReadDeadline(time.Unix(1, 0)) // which run sees when it next waits
	}
	<-p.done
}

func (p *pump) run() {
	defer close(p.done)
	for p.wait() {
		for waited := time.Duration(0); len(p.ops) > 0 && len(p.ops) < p.expected && waited < gatherMost; waited += gatherStep {
			pause(gatherStep)
			p.take(p.ready())
		}
		if len(p.ops) > 0 {
			p.write()
		}
	}
	p.leave()
}

// wait collects the events that are ready, or parks until one is. It returns false at the end.
func (p *pump) wait() bool {
	n := 0
	err := p.raw.Read(func(epfd uintptr) bool {
		n = epollNow(int(epfd), p.events)
		return n > 0
	})
	p.take(n)
	return err == nil
}

// ready asks without waiting how many connections have something.
func (p *pump) ready() (n int) {
	_ = p.raw.Control(func(epfd uintptr) { n = epollNow(int(epfd), p.events) })
	return n
}

func epollNow(epfd int, events []unix.EpollEvent) int {
	for {
		n, err := unix.EpollWait(epfd, events, 0)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0)
		}
	}
}

// pause gives way for so short a time that the runtime's timers, which count in
// milliseconds where nothing else happens, would miss it.
func pause(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_, _ = unix.Ppoll(nil, &ts, nil)
}

// take reads the operations of n events.
func (p *pump) take(n int) {
	for _, e := range p.events[:n] {
		p.mu.Lock()
		c := p.conns[e.Fd]
		p.mu.Unlock()
		switch {
		case c == nil || c.pending > 0: // those have more to say, and will be heard
			continue
		case c.blocked:
			p.flush(c)
			continue
		}
		err := c.fill()
		p.parse(c)
		switch {
		case c.pending > 0 || errors.Is(err, unix.EAGAIN):
			// The end of a connection that has asked is seen again once it is answered.
			if e.Events&unix.EPOLLOUT != 0 {
				_ = p.control(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN)
			}
		case err != nil || c.bad:
			p.drop(c)
		}
	}
}

// fill reads once what has come. Its error is unix.EAGAIN where nothing has, and
// net.ErrClosed at the end.
func (c *pumped) fill() error {
	c.in = c.in[:copy(c.in, c.in[c.used:])]
	c.used = 0
	if len(c.in) == cap(c.in) {
		grown := make([]byte, len(c.in), 2*cap(c.in)+pumpBuffer)
		copy(grown, c.in)
		c.in = grown
	} else if len(c.in) == 0 && cap(c.in) > 16*pumpBuffer {
		c.in = make([]byte, 0, pumpBuffer)
	}
	for {
		n, err := unix.Read(c.fd, c.in[len(c.in):cap(c.in)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return net.ErrClosed
		default:
			c.in = c.in[:len(c.in)+n]
			return nil
		}
	}
}

// parse makes operations of the frames that are whole. They point into c.in, which
// stays as it is until they are answered.
func (p *pump) parse(c *pumped) {
	for !c.bad && len(c.in)-c.used >= 4 {
		n := binary.BigEndian.Uint32(c.in[c.used:])
		if n > maxBody {
			c.bad = true
			return
		}
		end := c.used + 4 + int(n)
		if len(c.in) < end {
			return
		}
		op, err := parseOp(c.in[c.used+4 : end])
		if err != nil {
			c.bad = true
			return
		}
		p.ops, p.from = append(p.ops, op), append(p.from, c)
		c.pending++
		c.used = end
	}
}

// write commits the batch and answers it.
func (p *pump) write() {
	answers := p.writer.WriteAll(p.ops)
	asked := p.from
	p.expected = len(p.ops)
	clear(p.ops)
	p.ops, p.from = p.ops[:0], nil
	for i, c := range asked {
		c.out = appendAnswer(c.out, answers[i].Result, answers[i].Err)
		if c.pending--; c.pending == 0 {
			p.flush(c)
		}
	}
	clear(asked)
	p.from = asked[:0]
}

// flush sends a connection its answers. Answers that it cannot take now wait, and nothing is read
// from it meanwhile.
func (p *pump) flush(c *pumped) {
	for len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		switch {
		case err == nil:
			c.out = c.out[:copy(c.out, c.out[n:])]
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if !c.blocked {
				c.blocked = true
				_ = p.control(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLOUT)
			}
			return
		default:
			p.drop(c)
			return
		}
	}
	if c.bad {
		p.drop(c)
		return
	}
	if c.blocked {
		c.blocked = false
		_ = p.control(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN)
	}
	if cap(c.out) > 16*pumpBuffer {
		c.out = nil
	}
}

// drop ends a connection.
func (p *pump) drop(c *pumped) {
	p.mu.Lock()
	delete(p.conns, int32(c.fd))
	p.mu.Unlock()
	_ = p.control(unix.EPOLL_CTL_DEL, c.fd, 0) // a child being forked may hold a copy
	_ = unix.Close(c.fd)
}

// leave gives those who have not taken their answers yet a last moment, and ends all.
func (p *pump) leave() {
	if len(p.ops) > 0 {
		p.write()
	}
	p.mu.Lock()
	grace := p.grace
	p.mu.Unlock()
	for end := time.Now().Add(grace); time.Now().Before(end); {
		var late []unix.PollFd
		for _, c := range p.all() {
			if c.blocked {
				late = append(late, unix.PollFd{Fd: int32(c.fd), Events: unix.POLLOUT})
			}
		}
		if len(late) == 0 {
			break
		}
		if n, err := unix.Poll(late, int(time.Until(end).Milliseconds())+1); n <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
		for _, f := range late {
			if c := p.conns[f.Fd]; f.Revents != 0 {
				p.flush(c)
			}
		}
	}
	for _, c := range p.all() {
		p.drop(c)
	}
	_ = p.poll.Close()
}

func (p *pump) all() []*pumped {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*pumped, 0, len(p.conns))
	for _, c := range p.conns {
		out = append(out, c)
	}
	return out
}
