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

// Journal lists the messages delivered to one generation. Each entry is written before the
// delivery, so that after a kill the next supervisor knows what the agent may have. It serves ways
// on which a message can be in flight and visible nowhere. A message that is not in the journal
// was never sent.
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
	if len(j.given) == 0 { // the file is of an earlier generation
		flags |= os.O_TRUNC
	}
	if j.f, err = regular.OpenFile(path, flags, 0o600); err != nil {
		return nil, fmt.Errorf("record a delivery: %w", err)
	}
	return j, nil
}

const journalFile = "given"

// readJournal returns the ids in a journal that belong to a generation.
func readJournal(path, generation string) (map[string]bool, error) {
	ids := map[string]bool{}
	old, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ids, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of deliveries: %w", err)
	}
	s := bufio.NewScanner(old)
	for s.Scan() {
		if gen, id, ok := strings.Cut(s.Text(), " "); ok && gen == generation {
			ids[id] = true
		}
	}
	if err := errors.Join(s.Err(), old.Close()); err != nil {
		return nil, fmt.Errorf("read the journal of deliveries: %w", err)
	}
	return ids, nil
}

// Typed returns the ids of the mail that is typed into a generation whose hooks were not heard, so
// that a late hook does not give it as well.
func Typed(b team.Bundle, generation string) (map[string]bool, error) {
	return readJournal(filepath.Join(string(b), journalFile), generation)
}

// Note adds an id and reports whether the journal already had it. It writes one line in one write:
// a kill leaves the line whole or missing, and in the latter case nothing was sent.
func (j *Journal) Note(generation, id string) (before bool, err error) {
	if j.given[id] {
		return true, nil
	}
	if _, err := fmt.Fprintf(j.f, "%s %s\n", generation, id); err != nil {
		return false, fmt.Errorf("record a delivery: %w", err)
	}
	j.given[id] = true
	return false, nil
}

// Close closes the file.
func (j *Journal) Close() { _ = j.f.Close() }
