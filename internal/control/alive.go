package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// A supervisor that is stopped, or has no free descriptor to accept with, has a socket that can be
// connected to but never answers. A client whose answer takes longer than aliveAfter therefore
// pings on a second connection, and again after aliveEvery or more, up to aliveMost (nextPing). A
// separate goroutine answers the ping, which needs neither the loop nor the disk. Time alone does
// not decide: on a loaded machine a healthy process may not run for longer than any useful limit,
// but then one of its threads is runnable, or waits for the disk.
const (
	aliveAfter = 2 * time.Second
	aliveEvery = 3 * time.Second
	aliveMost  = time.Minute
	// silentFor is the maximum silence of a process that could run and is idle.
	silentFor = 5 * time.Second
	// againFor is silentFor for one that was given up recently. It is longer than the pause of an HTTP
	// server that has no descriptor to accept with, which tries again after a second.
	againFor = 2 * time.Second
	// stoppedFor is the maximum time for a stopped process: a debugger stops one for moments.
	stoppedFor = time.Second
	// busyFor bounds the patience with a process that wants to run and does not answer.
	busyFor    = 60 * time.Second
	aliveLooks = 100 * time.Millisecond
	// givenUpFor is the period in which a supervisor that was given up is not waited for again: a
	// command that asks it several times waits once.
	givenUpFor = 10 * time.Second
)

// pingPath identifies the listener. ledgerHeader names the ledger of a request, in the form of
// package fileid.
const (
	pingPath     = "/v1/ping"
	ledgerHeader = hookcall.LedgerHeader
)

// reasonOther is a supervisor of another ledger than the one at its path.
const reasonOther = "supervisor_of_another_ledger"

// pong answers a ping.
type pong struct {
	PID    int    `json:"pid"`
	Ledger string `json:"ledger"`
}

// presence is the state of a socket's listener.
type presence int

const (
	nobody  presence = iota
	present          // a supervisor of the ledger, as far as can be seen
	foreign          // a supervisor of a file that has lost the name
)

// reach finds out what listens at a socket. An error means that the listener does not answer, or
// that this cannot be determined.
func reach(ctx context.Context, socket, ledger string) (presence, error) {
	return reachAfter(ctx, socket, ledger, 0)
}

// reachAfter is reach for a caller that has already waited for an answer.
func reachAfter(ctx context.Context, socket, ledger string, waited time.Duration) (presence, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nobody, nil
	case err != nil && ctx.Err() != nil:
		return nobody, context.Cause(ctx)
	case err != nil:
		return nobody, team.Errorf(team.CodeUnavailable, "reach the supervisor: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := checkPeer(conn); err != nil {
		return nobody, err
	}
	pid, err := peerPID(conn)
	if err == nil && pid > 0 && !tool.Lives(pid) {
		return nobody, nil
	}
	mine := fileid.At(ledger)
	p, err := ping(ctx, conn, socket, pid, mine, waited)
	switch {
	case err != nil && (ctx.Err() != nil || team.ReasonOf(err) == team.ReasonHung):
		return nobody, err
	case err != nil: // it ended while it was asked
		return nobody, nil
	case p.Ledger != "" && ledger != "" && p.Ledger != mine:
		return foreign, nil
	}
	return present, nil
}

// ping asks the listener of a connection for its identity, and waits as long as the state of the
// process justifies.
func ping(ctx context.Context, conn net.Conn, socket string, pid int, ledger string, waited time.Duration) (pong, error) {
	type answer struct {
		pong pong
		err  error
	}
	ch := make(chan answer, 1)
	go func() {
		p, err := askPing(conn, ledger)
		ch <- answer{p, err}
	}()
	defer func() { _ = conn.SetDeadline(time.Unix(1, 0)) }() // ends the goroutine
	tick := time.NewTicker(aliveLooks)
	defer tick.Stop()
	watch := silence{last: time.Now()}
	before, again := silent.of(socket, pid)
	watch.again = again
	for {
		select {
		case a := <-ch:
			silent.forget(socket)
			return a.pong, a.err
		case <-ctx.Done():
			return pong{}, context.Cause(ctx)
		case now := <-tick.C:
			if why := watch.look(activity(pid), now); why != "" {
				waited += before + watch.waited
				silent.note(socket, pid, waited)
				return pong{}, hung(pid, fmt.Sprintf("%s (waited %d s)", why, int(waited.Round(time.Second)/time.Second)))
			}
		}
	}
}

func askPing(conn net.Conn, ledger string) (p pong, err error) {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: supervisor\r\n%s: %s\r\nConnection: close\r\n\r\n", pingPath, ledgerHeader, ledger); err != nil {
		return p, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return p, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK { // a version that is not asked this
		return p, nil
	}
	return p, json.NewDecoder(res.Body).Decode(&p)
}

// doing is the activity of a process as the system reports it.
type doing int

const (
	doingUnknown doing = iota
	doingNothing       // all of its threads sleep
	doingWork          // one is runnable, or waits for the disk
	doingStopped       // by a signal or a debugger
)

// silence adds up what a process did while it did not answer.
type silence struct {
	last                  time.Time
	idle, stopped, busier time.Duration
	waited                time.Duration
	again                 bool // it was given up before, not long ago
}

// look takes one more sample; the text is the reason to give up, "" to continue.
func (s *silence) look(d doing, now time.Time) string {
	passed := now.Sub(s.last)
	s.last = now
	if passed > 10*aliveLooks { // this process has not run itself: the sample means nothing
		passed = aliveLooks
	}
	s.waited += passed
	switch d {
	case doingStopped:
		s.stopped += passed
	case doingWork:
		s.busier += passed
		s.stopped = 0
	case doingNothing, doingUnknown:
		s.idle += passed
		s.stopped = 0
	}
	switch {
	case s.stopped >= stoppedFor, s.again && s.stopped > 0:
		return "it is stopped"
	case s.idle >= silentFor, s.again && s.idle >= againFor:
		return "no answer"
	case s.busier >= busyFor:
		return "it is busy"
	}
	return ""
}

// silences are the supervisors that were given up, by their sockets.
type silences struct {
	mu sync.Mutex
	by map[string]givenUp
}

// givenUp is a process that was waited for in vain.
type givenUp struct {
	pid    int
	at     time.Time
	waited time.Duration // in all, since it answered last
}

// silent records the supervisors that do not answer. All clients of this process share it, since
// it is about the other process.
var silent silences

// of returns how long a process was waited for, if it was given up recently.
func (s *silences) of(socket string, pid int) (waited time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.by[socket]
	if !ok || g.pid != pid || time.Since(g.at) > givenUpFor {
		return 0, false
	}
	return g.waited, true
}

func (s *silences) note(socket string, pid int, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]givenUp{}
	}
	s.by[socket] = givenUp{pid, time.Now(), waited}
}

func (s *silences) forget(socket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, socket)
}

// patience is the time to wait for an answer before pinging the supervisor.
func (s *silences) patience(socket string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.by[socket]; ok && time.Since(g.at) <= givenUpFor {
		return 0
	}
	return aliveAfter
}

// hung is the error for a supervisor that lives and does not answer.
func hung(pid int, why string) error {
	e := team.Errorf(team.CodeUnavailable, "the supervisor, pid %d, does not answer: %s%s", pid, why, descriptors(pid)).WithReason(team.ReasonHung)
	if activity(pid) == doingStopped {
		return e.WithHint(fmt.Sprintf("kill -CONT %d lets it go on; kill -9 %d ends it: the members go on, and the next command starts another", pid, pid))
	}
	return e.WithHint(fmt.Sprintf("kill -9 %d ends it: the members go on, and the next command starts another", pid))
}

// attended returns ctx for a request, which ends with the reason when the supervisor no longer
// answers. The caller must call stop when the request has ended.
func (c *Client) attended(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	after := silent.patience(c.socket)
	t := time.AfterFunc(after, func() { c.attend(ctx, cancel, after) })
	return ctx, func() {
		t.Stop()
		cancel(nil)
	}
}

// nextPing is the pause after a ping that was answered, in a request that has taken so long. It
// grows with the request: one that follows what happens may be open all day, and is to wake nobody
// while nothing does.
func nextPing(taken time.Duration) time.Duration {
	return min(max(taken, aliveEvery), aliveMost)
}

// attend pings the supervisor until ctx ends.
func (c *Client) attend(ctx context.Context, cancel context.CancelCauseFunc, waited time.Duration) {
	began := time.Now().Add(-waited)
	t := time.NewTimer(aliveMost)
	defer t.Stop()
	for {
		who, err := reachAfter(ctx, c.socket, "", waited)
		if err == nil && who == nobody { // the request itself notices that it has exited
			err = silently(ctx, c.lock)
		}
		if team.ReasonOf(err) == team.ReasonHung {
			cancel(err)
			return
		}
		waited = nextPing(time.Since(began))
		t.Reset(waited)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
