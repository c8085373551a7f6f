package courier

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Journal is the list of what was handed to one generation, written before it is
// handed over: who comes after a kill knows what the agent may have. It is for ways
// on which a message can be on its way and nowhere to be seen. What is not in it was
// never given.
type Journal struct {
	f     *os.File
	given map[string]bool
}

// OpenJournal opens the journal of a generation in its member's bundle.
func OpenJournal(bundle, generation string) (*Journal, error) {
	path := filepath.Join(bundle, journalFile)
	j := &Journal{}
	var err error
	if j.given, err = readJournal(path, generation); err != nil {
		return nil, err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if len(j.given) == 0 { // of an earlier generation
		flags |= os.O_TRUNC
	}
	if j.f, err = regular.OpenFile(path, flags, 0o600); err != nil {
		return nil, fmt.Errorf("note what is given: %w", err)
	}
	return j, nil
}

const journalFile = "given"

// readJournal returns the ids that stand in a journal for a generation.
func readJournal(path, generation string) (map[string]bool, error) {
	ids := map[string]bool{}
	old, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ids, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was given: %w", err)
	}
	s := bufio.NewScanner(old)
	for s.Scan() {
		if gen, id, ok := strings.Cut(s.Text(), " "); ok && gen == generation {
			ids[id] = true
		}
	}
	if err := errors.Join(s.Err(), old.Close()); err != nil {
		return nil, fmt.Errorf("read what was given: %w", err)
	}
	return ids, nil
}

// Typed returns the ids of the mail that is typed into a generation whose hooks were not
// heard: one that comes late does not give it too.
func Typed(b team.Bundle, generation string) (map[string]bool, error) {
	return readJournal(filepath.Join(string(b), journalFile), generation)
}

// Note writes an id down and reports whether it stood there before. One write of
// one line: a kill leaves all of it or nothing, and nothing was given then.
func (j *Journal) Note(generation, id string) (before bool, err error) {
	if j.given[id] {
		return true, nil
	}
	if _, err := fmt.Fprintf(j.f, "%s %s\n", generation, id); err != nil {
		return false, fmt.Errorf("note what is given: %w", err)
	}
	j.given[id] = true
	return false, nil
}

// Close closes the file.
func (j *Journal) Close() { _ = j.f.Close() }
