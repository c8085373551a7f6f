package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/memberlog"
)

func TestParseSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 3, 4, 12, 30, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"10m": "2025-03-04T12:20:00Z", "0s": "2025-03-04T12:30:00Z", "2h30m": "2025-03-04T10:00:00Z",
		"12:05": "2025-03-04T12:05:00Z", "23:00:01": "2025-03-03T23:00:01Z",
		"2025-01-02": "2025-01-02T00:00:00Z", "2025-01-02 03:04": "2025-01-02T03:04:00Z", "2025-01-02T03:04:05+01:00": "2025-01-02T02:04:05Z",
	} {
		if got, ok := parseSince(in, now); !ok || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "-5m", "yesterday", "25:00", "10"} {
		if got, ok := parseSince(in, now); ok {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// shared is a buffer that a test can wait on.
type shared struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	bell chan struct{}
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		select {
		case s.bell <- struct{}{}:
		default:
		}
	}()
	return s.buf.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *shared) await(t *testing.T, want string) {
	t.Helper()
	late := time.After(5 * time.Minute)
	for !strings.HasSuffix(s.String(), want) {
		select {
		case <-s.bell:
		case <-late:
			t.Fatalf("waited for %q, have %q", want, s.String())
		}
	}
}

// TestFollow checks that following a file continues if the file is created late, grows by parts
// of lines, is truncated, replaced, or removed and created again.
func TestFollow(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "output.log")
	out := &shared{bell: make(chan struct{}, 1)}
	l := &logReader{log: memberlog.New(path), member: "m", out: &output{stdout: out, stderr: out}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.print(ctx, -1, time.Time{}, true) }()

	add := func(flag int, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add(os.O_APPEND, "first\n")
	out.await(t, "first\n")
	add(os.O_APPEND, "se\x1b[3")
	add(os.O_APPEND, "1mcond\x1b[0m\n")
	out.await(t, "second\n")
	add(os.O_TRUNC, "cut\n")
	out.await(t, "cut\n")
	if err := os.WriteFile(path+".new", []byte("replaced\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	out.await(t, "replaced\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add(os.O_APPEND, "again\n")
	out.await(t, "again\n")
	add(os.O_APPEND, "half a line")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if want := "first\nsecond\ncut\nreplaced\nagain\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%q, want %q first", out.String(), want)
	}
}
