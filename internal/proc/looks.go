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

// Looks lets those who look through the process table at the same time share one
// look: to end a hundred trees at once takes little more of them than to end one.
// The zero value is ready; a nil one shares with nobody.
type Looks struct {
	turn sync.Mutex // held by the look that is under way
	rest time.Time  // under turn: the next does not begin before

	mu   sync.Mutex
	next *round // has not begun, and may be joined; nil: nobody waits for one
}

// restMax bounds how long a look is put off for the one before.
const restMax = 50 * time.Millisecond

// round is a look that several wait for; the rest is set before done is closed.
type round struct {
	done  chan struct{}
	sight *sight
	err   error
}

// look returns what a look saw that began after the call. After each, as much time
// is left to others as it took: meanwhile more come who need the next.
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
	l.next = nil // who asks from now on must not be told what was seen before
	l.mu.Unlock()
	began := time.Now()
	r.sight, r.err = takeSight()
	l.rest = time.Now().Add(min(time.Since(began), restMax))
	return r.sight, r.err
}

// sight is the process table with what the environments say of whose each is.
type sight struct {
	boot string
	by   map[int]sighted  // the living
	kids map[int][]int    // by parent, the dead too: what is below them is not lost
	gens map[string][]int // the living that are not detached, by generation
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

// marks reads what an environment says of whose its process is: the generations it
// belongs to, one as a rule, and whether it is nobody's descendant.
func marks(environ []byte) (gens []string, detached bool) {
	const genKey, detachedMark = team.EnvGen + "=", EnvDetached + "=1"
	for len(environ) > 0 {
		var kv []byte
		kv, environ, _ = bytes.Cut(environ, []byte{0})
		if string(kv) == detachedMark {
			detached = true
		} else if gen, ok := bytes.CutPrefix(kv, []byte(genKey)); ok && len(gen) > 0 {
			gens = append(gens, string(gen))
		}
	}
	return gens, detached
}

func (s *sight) id(pid int) backends.ProcID {
	return backends.ProcID{BootID: s.boot, PID: pid, StartTicks: s.by[pid].start}
}

// lived reports whether the process was alive when the look came to it.
func (s *sight) lived(id backends.ProcID) bool {
	in, ok := s.by[id.PID]
	return ok && id.BootID == s.boot && in.start == id.StartTicks
}

// ofGeneration are the processes that were executed with TEAMCTL_GENERATION=gen, the
// caller excepted.
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

// below are the living processes below the roots, detached ones and what is below
// them left out.
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
