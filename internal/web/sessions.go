package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
)

const (
	// CodeLife is how long a login code works.
	CodeLife = 10 * time.Minute
	// SessionLife is how long a session lasts.
	SessionLife = 30 * 24 * time.Hour
	// seenEvery is how exactly the last use of a session is recorded.
	seenEvery = 5 * time.Minute
)

// Store keeps codes and sessions in a file, which several processes may change: sessions survive a
// restart of the server, and another process revokes them.
type Store struct {
	Path string // the lock is the same with ".lock"
	Now  func() time.Time
}

// Session is one browser that has logged in.
type Session struct {
	ID    string    `json:"id"`
	Hash  string    `json:"hash"`
	Agent string    `json:"agent"` // as the browser calls itself
	Began time.Time `json:"began"`
	Seen  time.Time `json:"seen"`
	Until time.Time `json:"until"`
}

type code struct {
	Hash  string    `json:"hash"`
	Until time.Time `json:"until"`
}

type stored struct {
	Port     int       `json:"port,omitempty"` // of the last server, so that open pages find the next one
	Codes    []code    `json:"codes"`
	Sessions []Session `json:"sessions"`
}

func secret() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (s Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

func (s Store) read() (d stored, err error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", s.Path, err)
	}
	now := s.now()
	d.Codes = slices.DeleteFunc(d.Codes, func(c code) bool { return !now.Before(c.Until) })
	d.Sessions = slices.DeleteFunc(d.Sessions, func(x Session) bool { return !now.Before(x.Until) })
	return d, nil
}

// change reads, changes and writes the file under its lock. An error of f changes nothing.
func (s Store) change(ctx context.Context, f func(*stored) error) (err error) {
	lock, err := filelock.Lock(ctx, s.Path+".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	d, err := s.read()
	if err != nil {
		return err
	}
	if err := f(&d); err != nil {
		return err
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(s.Path, append(data, '\n'), 0o600, true)
}

// NewCode returns a code for one login.
func (s Store) NewCode(ctx context.Context) (string, error) {
	c := secret()
	return c, s.change(ctx, func(d *stored) error {
		d.Codes = append(d.Codes, code{hashOf(c), s.now().Add(CodeLife)})
		return nil
	})
}

// ErrCode is the error for a code that was used, has expired, or never was one.
var ErrCode = errors.New("this link has been used or is older than ten minutes")

// Login takes a code and returns the token of a new session.
func (s Store) Login(ctx context.Context, c, agent string) (token string, err error) {
	token = secret()
	return token, s.change(ctx, func(d *stored) error {
		i := slices.IndexFunc(d.Codes, func(x code) bool { return same(x.Hash, hashOf(c)) })
		if i < 0 {
			return ErrCode
		}
		now := s.now()
		d.Codes = slices.Delete(d.Codes, i, i+1)
		d.Sessions = append(d.Sessions, Session{
			ID: secret()[:8], Hash: hashOf(token), Agent: agent[:min(len(agent), 200)], Began: now, Seen: now, Until: now.Add(SessionLife),
		})
		return nil
	})
}

// Session returns the session of a token.
func (s Store) Session(ctx context.Context, token string) (Session, bool) {
	d, err := s.read()
	if err != nil || token == "" {
		return Session{}, false
	}
	i := slices.IndexFunc(d.Sessions, func(x Session) bool { return same(x.Hash, hashOf(token)) })
	if i < 0 {
		return Session{}, false
	}
	x := d.Sessions[i]
	if now := s.now(); now.Sub(x.Seen) >= seenEvery {
		_ = s.change(ctx, func(d *stored) error { // the time of its last use is nice to know and no more
			for i := range d.Sessions {
				if d.Sessions[i].ID == x.ID {
					d.Sessions[i].Seen = now
				}
			}
			return nil
		})
	}
	return x, true
}

// Sessions lists the sessions, the oldest first.
func (s Store) Sessions() ([]Session, error) {
	d, err := s.read()
	return d.Sessions, err
}

// Revoke ends the sessions with these ids, all of them without ids, and returns how many there
// were. Codes that nobody has used are revoked with the last session.
func (s Store) Revoke(ctx context.Context, ids ...string) (n int, err error) {
	err = s.change(ctx, func(d *stored) error {
		before := len(d.Sessions)
		d.Sessions = slices.DeleteFunc(d.Sessions, func(x Session) bool { return len(ids) == 0 || slices.Contains(ids, x.ID) })
		if n = before - len(d.Sessions); len(ids) == 0 {
			d.Codes = nil
		}
		return nil
	})
	return n, err
}

// Port returns the port of the last server, 0 for none.
func (s Store) Port() int {
	d, err := s.read()
	if err != nil {
		return 0
	}
	return d.Port
}

// SetPort records the port of the server.
func (s Store) SetPort(ctx context.Context, port int) error {
	return s.change(ctx, func(d *stored) error {
		d.Port = port
		return nil
	})
}
