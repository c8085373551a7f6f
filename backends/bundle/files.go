package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// WriteLaunch writes launch.json to the bundle of l (created 0700 if missing).
func WriteLaunch(l backends.Launch) error {
	if err := os.MkdirAll(string(l.Bundle), 0o700); err != nil {
		return fmt.Errorf("create bundle: %w", err)
	}
	return writeJSON(l.Bundle.Launch(), l, false)
}

// WritePane records the pane of a generation.
func WritePane(b team.Bundle, p team.Pane) error { return writeJSON(b.Pane(), p, false) }

// WriteExit durably records how a generation ended: the record survives a power
// failure.
func WriteExit(b team.Bundle, e backends.Exit) error { return writeJSON(b.Exit(), e, true) }

// WriteProc records the process identity of a generation.
func WriteProc(b team.Bundle, p backends.Proc) error { return writeJSON(b.Proc(), p, false) }

// ReadLaunch reads launch.json. Like the other readers it returns CodeNotFound
// if the file is missing or belongs to a generation other than gen; an empty
// gen matches any.
func ReadLaunch(b team.Bundle, gen string) (backends.Launch, error) {
	return readJSON(b.Launch(), gen, func(l backends.Launch) string { return l.Generation })
}

// ReadProc reads proc.json.
func ReadProc(b team.Bundle, gen string) (backends.Proc, error) {
	return readJSON(b.Proc(), gen, func(p backends.Proc) string { return p.Generation })
}

// ReadPane reads pane.json.
func ReadPane(b team.Bundle, gen string) (team.Pane, error) {
	return readJSON(b.Pane(), gen, func(p team.Pane) string { return p.Generation })
}

// ReadExit reads exit.json.
func ReadExit(b team.Bundle, gen string) (backends.Exit, error) {
	return readJSON(b.Exit(), gen, func(e backends.Exit) string { return e.Generation })
}

// Group is the content of group.json: it names the control group of a
// generation before anything is in it, so that whatever a dead shim leaves can
// be found.
type Group struct {
	Generation string `json:"generation"`
	Path       string `json:"path"`
}

// WriteGroup records the control group of a generation.
func WriteGroup(b team.Bundle, g Group) error { return writeJSON(b.Group(), g, false) }

// ReadGroup reads group.json.
func ReadGroup(b team.Bundle, gen string) (Group, error) {
	return readJSON(b.Group(), gen, func(g Group) string { return g.Generation })
}

// Logger is the content of logger.json: the process that writes the log of a
// tmux pane.
type Logger struct {
	Generation string          `json:"generation"`
	Process    backends.ProcID `json:"logger"`
	Ended      bool            `json:"ended,omitempty"` // its input ended; not killed by a signal
}

// WriteLogger records the log writer of a generation.
func WriteLogger(b team.Bundle, l Logger) error { return writeJSON(b.Logger(), l, false) }

// ReadLogger reads logger.json.
func ReadLogger(b team.Bundle, gen string) (Logger, error) {
	return readJSON(b.Logger(), gen, func(l Logger) string { return l.Generation })
}

// readyWord is the content of ready.json.
type readyWord struct {
	Generation string `json:"generation"`
}

// SayReady announces that an agent accepts messages: by a file in its bundle,
// for a supervisor that is not reading at the moment, and then by a datagram.
// Its error is that of the file.
func SayReady(b team.Bundle, socket, agent, gen string) error {
	err := writeJSON(b.Ready(), readyWord{gen}, false)
	_ = Notify(socket, agent, gen, EventReady) // a hint; the file contains the same
	return err
}

// ReadReady returns nil if a generation has announced that it accepts messages,
// otherwise CodeNotFound like the other readers.
func ReadReady(b team.Bundle, gen string) error {
	_, err := readJSON(b.Ready(), gen, func(w readyWord) string { return w.Generation })
	return err
}

func readJSON[T any](path, gen string, genOf func(T) string) (T, error) {
	var v, zero T
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return zero, team.Errorf(team.CodeNotFound, "read %s: %w", filepath.Base(path), err)
	}
	if err != nil {
		return zero, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return zero, fmt.Errorf("read %s: %w", path, undecodable{err})
	}
	if g := genOf(v); gen != "" && g != gen {
		return zero, team.Errorf(team.CodeNotFound, "%s is of generation %s, not %s", filepath.Base(path), g, gen)
	}
	return v, nil
}

// writeJSON replaces path atomically. Without sync the file survives the death
// of every process but not of the machine, which suffices for facts about
// processes.
func writeJSON(path string, v any, sync bool) (err error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(dir, base+".*.tmp") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(b, '\n'))
	if err == nil && sync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if !sync {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil // the file is written; only its surviving a power failure is uncertain
	}
	_ = d.Sync()
	return d.Close()
}

// Sweep removes what a killed writer left in the bundle. The caller holds
// start.lock and knows that no generation is alive.
func Sweep(b team.Bundle) { SweepOlder(b, 0) }

// SweepOlder is Sweep for a caller that does not know whether a writer is
// alive: it keeps files younger than age. It returns how many files it removed.
func SweepOlder(b team.Bundle, age time.Duration) (n int) {
	limit := time.Now().Add(-age)
	names, _ := filepath.Glob(filepath.Join(glob.Escape(string(b)), "*.tmp"))
	for _, name := range names {
		if fi, err := os.Lstat(name); err == nil && !fi.ModTime().After(limit) && os.Remove(name) == nil {
			n++
		}
	}
	return n
}
