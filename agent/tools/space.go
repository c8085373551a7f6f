package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/agent/secrets"
	"github.com/teamctl/teamctl/internal/atomicfile"
)

// Config configures a Space.
type Config struct {
	Dir     string   // the worktree, absolute
	Outputs string   // directory of the member's bundle for long results; "" for none
	Home    string   // home directory of teamctl, whose files are not the agent's
	Open    []string // directories outside Dir that may be read without approval: skills, overlays
	Closed  []string // files that no mode permits to open: keys
	// Rules returns the current rules of the team and the member's mode; nil: no rules.
	Rules func(context.Context) (Rules, error)
	Shell ShellConfig
	// Seen are the contents that the session has seen in earlier processes, as reported in
	// Out.Seen.
	Seen map[string]string
	// Secrets are hidden in the output of commands and pages before it is stored; nil hides
	// nothing.
	Secrets *secrets.Set
}

// Space is the working area of one session's tools. It remembers what the session has read.
type Space struct {
	cfg  Config
	dir  string // cfg.Dir with its links resolved
	root *os.Root
	home string   // cfg.Home with its links resolved
	open []string // cfg.Outputs and cfg.Open likewise
	shut []string // cfg.Closed likewise

	mu   sync.Mutex
	seen map[string][sha256.Size]byte // by resolved path
	todo []TodoItem

	back background
}

// Open opens a space; Close ends its background commands and releases it.
func Open(cfg Config) (*Space, error) {
	dir, err := filepath.EvalSymlinks(cfg.Dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Space{cfg: cfg, dir: dir, root: root, seen: map[string][sha256.Size]byte{}}
	if cfg.Home != "" {
		s.home = real(cfg.Home)
	}
	for _, dir := range append([]string{cfg.Outputs}, cfg.Open...) {
		if dir != "" {
			s.open = append(s.open, real(dir))
		}
	}
	for _, file := range cfg.Closed {
		s.shut = append(s.shut, real(file))
	}
	for path, sum := range cfg.Seen {
		var b [sha256.Size]byte
		if n, err := hex.Decode(b[:], []byte(sum)); err == nil && n == len(b) {
			s.seen[path] = b
		}
	}
	s.sweep()
	return s, nil
}

// sweepAge protects the files of running writers.
const sweepAge = time.Minute

// sweep removes what a writer killed during a write has left in the worktree, which would be
// committed as work.
func (s *Space) sweep() {
	list, err := gitFiles(context.Background(), s.dir)
	if err != nil {
		return // no repository: nothing is committed
	}
	for _, name := range list {
		if !atomicfile.IsTemp(filepath.Base(name)) {
			continue
		}
		if info, err := s.root.Lstat(name); err == nil && time.Since(info.ModTime()) > sweepAge {
			_ = s.root.Remove(name)
		}
	}
}

// Close ends all background commands and closes the space.
func (s *Space) Close() error {
	s.back.close()
	return s.root.Close()
}

// Where classifies the target of a path.
type Where int

// Values of Where.
const (
	Inside    Where = iota // in the worktree
	Readable               // outside, and may be read without approval
	Outside                // anything else
	Forbidden              // never read or written
)

// place is a path with all links resolved.
type place struct {
	abs   string // resolved
	rel   string // relative to the worktree, if inside
	where Where
}

// Locate classifies the target of a path, following links; its end need not exist. A path that
// cannot be resolved is judged by its name.
func (s *Space) Locate(path string) Where {
	p, err := s.locate(path)
	switch {
	case err == nil:
		return p.where
	case forbidden(s.absolute(path)) || slices.Contains(s.shut, s.absolute(path)):
		return Forbidden
	}
	return Outside
}

// absolute returns the absolute form of a path, without following links.
func (s *Space) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	return filepath.Clean(path)
}

func (s *Space) locate(path string) (place, error) {
	if path == "" {
		path = "."
	}
	if strings.ContainsRune(path, 0) {
		return place{}, wrongf("a path has no NUL byte")
	}
	if strings.HasPrefix(path, "~/") || path == "~" {
		return place{}, wrongf("%s: give the path itself, ~ is not expanded", path)
	}
	abs, err := resolve(s.absolute(path))
	if err != nil {
		return place{}, wrongf("%s: %s", path, plainPathError(err))
	}
	p := place{abs: abs, where: s.whereIs(abs)}
	if p.where == Inside {
		p.rel, err = filepath.Rel(s.dir, abs)
	}
	return p, err
}

// whereIs classifies a path without links.
func (s *Space) whereIs(abs string) Where {
	inside := below(s.dir, abs)
	inHome := s.home != "" && below(s.home, abs)
	if inside && inHome { // the inner one counts: a worktree may be in the home directory, or the home directory in a repository
		inside = below(s.home, s.dir)
	}
	switch {
	case forbidden(abs) || slices.Contains(s.shut, abs):
		return Forbidden
	case inside:
		return Inside
	case slices.ContainsFunc(s.open, func(dir string) bool { return below(dir, abs) }):
		return Readable
	case inHome:
		return Forbidden
	}
	return Outside
}

// forbidden reports files that no tool opens anywhere: the environments and memory of processes,
// and keys.
func forbidden(abs string) bool {
	f := strings.Split(strings.TrimPrefix(abs, "/"), "/")
	if f[0] == "proc" {
		last := f[len(f)-1]
		return last == "environ" || last == "mem" || last == "maps"
	}
	base := filepath.Base(abs)
	dir := filepath.Base(filepath.Dir(abs))
	switch {
	case dir == ".ssh" && !strings.HasSuffix(base, ".pub") && base != "config" && !strings.HasPrefix(base, "known_hosts"),
		dir == ".gnupg", dir == "private-keys-v1.d",
		base == ".netrc", base == ".pgpass", base == ".git-credentials",
		dir == ".aws" && base == "credentials":
		return true
	}
	return false
}

// below reports whether path is dir or below it; both are resolved.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// real resolves the links of a directory, which need not exist.
func real(path string) string {
	if p, err := resolve(filepath.Clean(path)); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// resolve follows all links of a path whose end need not exist.
func resolve(path string) (string, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		p, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(p, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", err
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return "", err // a link to a missing file
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// openFile opens a regular file for reading. It does not block on a FIFO.
func (s *Space) openFile(path string) (place, *os.File, error) {
	p, err := s.locate(path)
	if err != nil {
		return p, nil, err
	}
	var f *os.File
	switch p.where {
	case Forbidden:
		return p, nil, wrongf("%s may not be read", path)
	case Inside:
		f, err = s.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	case Readable, Outside:
		f, err = os.OpenFile(p.abs, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return p, nil, wrongf("%s: %s", path, plainPathError(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		_ = f.Close()
		if info.IsDir() {
			return p, nil, wrongf("%s is a directory: list it with ls", path)
		}
		return p, nil, wrongf("%s is not a regular file", path)
	}
	return p, f, err
}

// maxFile is the maximum size of a file read into memory.
const maxFile = 64 << 20

// load reads a whole file and records that the session has seen it.
func (s *Space) load(path string) (place, []byte, error) {
	p, f, err := s.openFile(path)
	if err != nil {
		return p, nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return p, nil, wrongf("%s: %s", path, plainPathError(err))
	}
	if len(b) > maxFile {
		return p, nil, wrongf("%s is larger than %d MB: search it with grep", path, maxFile>>20)
	}
	return p, b, nil
}

// saw records the content of a file, and returns it in the form of Config.Seen.
func (s *Space) saw(p place, content []byte) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(content)
	s.seen[p.abs] = sum
	return map[string]string{p.abs: hex.EncodeToString(sum[:])}
}

// fresh returns an error unless the session has read the file and it is unchanged since.
func (s *Space) fresh(path string, p place, content []byte) error {
	s.mu.Lock()
	sum, ok := s.seen[p.abs]
	s.mu.Unlock()
	switch {
	case !ok:
		return wrongf("stale: %s has not been read in this session. Read it first.", path)
	case sum != sha256.Sum256(content):
		return wrongf("stale: %s has changed since it was read. Read it again.", path)
	}
	return nil
}

// plainPathError returns the cause of a file error without the path, which may differ from the
// given one.
func plainPathError(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
