package proc

import (
	"bytes"
	"os"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/team"
)

// Looks lets concurrent scans of the process table share one scan: ending a
// hundred trees at once needs few more scans than ending one. The zero value is
// ready to use; a nil one shares nothing.
type Looks struct {
	turn sync.Mutex // held by the running scan
	rest time.Time  // guarded by turn: the next scan starts no earlier

	mu   sync.Mutex
	next *round // not started yet, others may join; nil if none is waiting
}

// restMax limits how long a scan is delayed after the previous one.
const restMax = 50 * time.Millisecond

// round is a scan for several waiters; the rest is set before done is closed.
type round struct {
	done  chan struct{}
	sight *sight
	err   error
}

// look returns the result of a scan that began after the call. After each scan
// it pauses for as long as the scan took, so that more callers can share the
// next.
func (l *Looks) look() (*sight, error) {
	if l == nil {
		return takeSight()
	}
	l.mu.Lock()
	if r := l.next; r != nil {
		l.mu.Unlock()
		<-r.done
		return r.sight, r.err
	}
	r := &round{done: make(chan struct{})}
	l.next = r
	l.mu.Unlock()
	defer close(r.done)

	l.turn.Lock()
	defer l.turn.Unlock()
	if d := time.Until(l.rest); d > 0 {
		<-time.After(d)
	}
	l.mu.Lock()
	l.next = nil // later callers must not get the result of this scan
	l.mu.Unlock()
	began := time.Now()
	r.sight, r.err = takeSight()
	l.rest = time.Now().Add(min(time.Since(began), restMax))
	return r.sight, r.err
}

// sight is the process table with the information in the processes'
// environments.
type sight struct {
	boot string
	by   map[int]sighted  // living processes
	kids map[int][]int    // by parent, including dead ones, so that their descendants are not lost
	gens map[string][]int // living processes that are not detached, by generation
}

type sighted struct {
	start    uint64
	detached bool
}

func takeSight() (*sight, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	tab, err := table()
	if err != nil {
		return nil, err
	}
	s := &sight{boot: boot, by: make(map[int]sighted, len(tab)), kids: make(map[int][]int, len(tab)), gens: map[string][]int{}}
	buf := make([]byte, 16<<10)
	for _, in := range tab {
		s.kids[in.ppid] = append(s.kids[in.ppid], in.pid)
		if in.dead {
			continue
		}
		if in.bare {
			s.by[in.pid] = sighted{in.start, false}
			continue
		}
		raw := environ.Of(in.pid, buf)
		if cap(raw) > cap(buf) {
			buf = raw
		}
		gens, detached := marks(raw)
		s.by[in.pid] = sighted{in.start, detached}
		for _, gen := range gens {
			if !detached {
				s.gens[gen] = append(s.gens[gen], in.pid)
			}
		}
	}
	return s, nil
}

// marks parses an environment: it returns the generations to which its process
// belongs, that of a member and that of a command the member runs, and whether it
// is detached.
func marks(environ []byte) (gens []string, detached bool) {
	const genKey, commandKey, detachedMark = team.EnvGen + "=", team.EnvCommand + "=", EnvDetached + "=1"
	for len(environ) > 0 {
		var kv []byte
		kv, environ, _ = bytes.Cut(environ, []byte{0})
		if string(kv) == detachedMark {
			detached = true
			continue
		}
		gen, ok := bytes.CutPrefix(kv, []byte(genKey))
		if !ok {
			gen, ok = bytes.CutPrefix(kv, []byte(commandKey))
		}
		if ok && len(gen) > 0 {
			gens = append(gens, string(gen))
		}
	}
	return gens, detached
}

func (s *sight) id(pid int) backends.ProcID {
	return backends.ProcID{BootID: s.boot, PID: pid, StartTicks: s.by[pid].start}
}

// lived reports whether the process was alive when the scan reached it.
func (s *sight) lived(id backends.ProcID) bool {
	in, ok := s.by[id.PID]
	return ok && id.BootID == s.boot && in.start == id.StartTicks
}

// ofGeneration returns the processes executed with TEAMCTL_GENERATION=gen,
// except the caller.
func (s *sight) ofGeneration(gen string) []backends.ProcID {
	var out []backends.ProcID
	self := os.Getpid()
	for _, pid := range s.gens[gen] {
		if pid != self {
			out = append(out, s.id(pid))
		}
	}
	return out
}

// below returns the living descendants of the roots, except detached processes
// and their descendants.
func (s *sight) below(roots []backends.ProcID) []backends.ProcID {
	var out []backends.ProcID
	seen := make(map[int]bool, len(roots))
	for _, r := range roots {
		seen[r.PID] = true
	}
	var walk func(pid int)
	walk = func(pid int) {
		for _, kid := range s.kids[pid] {
			in, living := s.by[kid]
			if seen[kid] || in.detached {
				continue
			}
			seen[kid] = true
			if living {
				out = append(out, s.id(kid))
			}
			walk(kid)
		}
	}
	for _, r := range roots {
		walk(r.PID)
	}
	return out
}
