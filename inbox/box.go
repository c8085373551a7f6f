package inbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// Box is one agent's mailbox. It holds no descriptor between calls and is safe
// for concurrent use.
type Box struct {
	agent string
	dir   string // the inboxes directory, absolute
	name  string // the file's name in it
	guard string // the lock file
	// reader is the lock of readers; see LockReader.
	reader string
	pid    string // the visible owner
	lack   string // exists while entries are missing
	last   string // a second link to the file last appended to
	// parked is where teamctl's lock directory for foreign clients is kept
	// while not in use.
	parked string

	mu    sync.Mutex
	seen  cursor // guarded by mu
	quiet quiet  // guarded by mu
}

// Open returns agent's mailbox in inboxesDir, with its locks in locksDir. It
// creates nothing before the first message. An agent name that is not a valid
// file name is CodeInvalid.
func Open(inboxesDir, locksDir, agent string) (*Box, error) {
	name, err := team.InboxName(agent)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(inboxesDir)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "open %s's mailbox: %w", agent, err)
	}
	locks, err := filepath.Abs(locksDir)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "open %s's mailbox: %w", agent, err)
	}
	return &Box{
		agent: agent,
		dir:   dir,
		name:  name + ".json",
		guard: filepath.Join(locks, name+".guard"),

		reader: filepath.Join(locks, name+".reader"),

		pid:  filepath.Join(locks, name+".pid"),
		lack: filepath.Join(locks, name+".restore"),
		last: filepath.Join(locks, name+".last"),

		parked: filepath.Join(locks, name+".lockdir"),
	}, nil
}

// Path is the mailbox file; it need not exist.
func (b *Box) Path() string { return filepath.Join(b.dir, b.name) }

// holding is the mailbox while its locks are held.
type holding struct {
	box      *Box
	root     *os.Root
	name     string
	foreign  *foreignLock   // nil if the disk is full
	shared   *filelock.Held // nil if there is none
	unshared bool           // there was none when the locks were taken
	since    time.Time      // when the operation began
}

// openDir opens the inboxes directory itself. It refuses a symlink in its place
// and a directory that others may write.
func (b *Box) openDir() (*os.Root, error) {
	named, err := os.Lstat(b.dir)
	if err != nil {
		return nil, err
	}
	if err := b.trust(named, b.dir, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = team.Errorf(team.CodeDenied, "%s was replaced while it was opened", b.dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// open opens the mailbox file. It refuses a symlink, anything that is not a
// regular file, another user's file and a world-writable file.
func (h *holding) open(flag int) (*os.File, fs.FileInfo, error) {
	// O_NONBLOCK, because opening a named pipe would wait for its other end.
	f, err := h.root.OpenFile(h.name, flag|noFollow|noAccessTime, 0)
	if errors.Is(err, syscall.EPERM) { // another user's file, which trust refuses
		f, err = h.root.OpenFile(h.name, flag|noFollow, 0)
	}
	if err != nil {
		if named, e := h.root.Lstat(h.name); e == nil {
			if e := h.box.trust(named, h.box.Path(), 0); e != nil {
				return nil, nil, e
			}
		}
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		var named fs.FileInfo
		if named, err = h.root.Lstat(h.name); err == nil {
			if err = h.box.trust(named, h.box.Path(), 0); err == nil && !os.SameFile(named, opened) {
				err = team.Errorf(team.CodeDenied, "%s %w", h.box.Path(), errReplaced)
			}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, opened, nil
}

var errReplaced = errors.New("was replaced while it was opened")

// trust returns an error for a file that is not of the wanted type, belongs to
// another user, or is world-writable.
func (b *Box) trust(info fs.FileInfo, path string, want fs.FileMode) error {
	if info.Mode().Type() != want {
		return team.Errorf(team.CodeDenied, "refuse %s: it is %v", path, info.Mode()).
			WithReason(team.ReasonHostileFile).WithHint("inspect it, then move it away")
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return team.Errorf(team.CodeDenied, "refuse %s: it belongs to user %d", path, st.Uid).
			WithReason(team.ReasonHostileFile).WithHint("run teamctl as the owner of the team")
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return team.Errorf(team.CodeDenied, "refuse %s: it is world-writable", path).
			WithReason(team.ReasonHostileFile).WithHint("chmod o-w " + team.ShellQuote(path))
	}
	return nil
}

// load reads the whole file; a missing one is empty.
func (h *holding) load() (data []byte, info fs.FileInfo, err error) { return h.loadBy(os.O_RDONLY) }

func (h *holding) loadBy(flag int) (data []byte, info fs.FileInfo, err error) {
	f, info, err := h.open(flag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = readFrom(f, 0, info.Size())
	return data, info, err
}

// readFrom reads [off, size), or less if the file has become shorter.
func readFrom(f *os.File, off, size int64) ([]byte, error) {
	data := make([]byte, max(size-off, 0))
	n, err := f.ReadAt(data, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// replace rewrites the file from the text of its elements.
func (h *holding) replace(elements [][]byte, sync bool) error {
	out, err := arrayOf(elements)
	if err != nil {
		return err
	}
	return h.replaceText(out, sync)
}

// replaceText is replace for the text of a whole mailbox.
func (h *holding) replaceText(out []byte, sync bool) error {
	if err := h.stillHeld(); err != nil {
		return err
	}
	if err := atomicfile.WriteRoot(h.root, h.name, out, 0o600, sync); err != nil {
		return err
	}
	if info, err := h.root.Lstat(h.name); err == nil {
		h.follow(info)
		forgetAccess(h.box.Path())
	}
	return nil
}

// arrayOf returns the text of a whole mailbox.
func arrayOf(elements [][]byte) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, raw := range elements {
		if i > 0 {
			out.WriteByte(',')
		}
		text, err := indent(raw)
		if err != nil {
			return nil, err
		}
		out.WriteString("\n  ")
		out.Write(text)
	}
	if len(elements) > 0 {
		out.WriteByte('\n')
	}
	out.WriteByte(']')
	return out.Bytes(), nil
}

// stillHeld returns an error if the file must not be written: another program
// took a lock, or a shared lock has been created since (errAgain).
func (h *holding) stillHeld() error {
	if h.unshared {
		if there, err := hasShared(h.root); err != nil {
			return err
		} else if there {
			return errAgain
		}
	}
	if h.foreign == nil {
		return nil
	}
	return h.foreign.check()
}

// Entries returns all messages, oldest first; a missing file has none. The
// error may be a *CorruptError.
func (b *Box) Entries(ctx context.Context) ([]Entry, error) {
	var out []Entry
	err := b.hold(ctx, "read", false, false, func(h *holding) error {
		data, _, err := h.load()
		if err != nil {
			return err
		}
		elems, bad := scanArray(data)
		if bad != nil {
			return h.repair(data, elems, bad)
		}
		out = decodeAll(data, elems)
		return nil
	})
	return out, err
}

func decodeAll(data []byte, elems []element) []Entry {
	var out []Entry
	for i, e := range elems {
		if e.obj {
			out = append(out, decode(data, e, i))
		}
	}
	return out
}
