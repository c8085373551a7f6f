package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// CorruptError reports that a mailbox file could not be read to its end and was
// repaired: its former content is at Moved, and the readable entries are in the
// file again. The operation that found the damage was not performed.
type CorruptError struct {
	Path     string // the mailbox
	Moved    string // new name of the damaged file
	Offset   int    // offset of the first byte that could not be read
	Salvaged int    // entries kept
	Torn     bool   // the text only ended early, as after a killed writer
	Err      error  // a *team.Error: CodeInternal, team.ReasonCorruptMailbox
}

// Error describes the damage and the repair.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v; kept %d entries, the damaged file is %s", e.Err, e.Salvaged, e.Moved)
}

// Unwrap returns the coded error.
func (e *CorruptError) Unwrap() error { return e.Err }

// Repair checks the whole file and repairs it if it is damaged; the result then
// describes the repair. It returns nil for an intact or missing file.
func (b *Box) Repair(ctx context.Context) (*CorruptError, error) {
	var corrupt *CorruptError
	err := b.hold(ctx, "repair", false, true, func(h *holding) error {
		data, _, err := h.load()
		if err != nil {
			return err
		}
		elems, bad := scanArray(data)
		if bad == nil {
			return nil
		}
		return h.repair(data, elems, bad)
	})
	if errors.As(err, &corrupt) {
		return corrupt, nil
	}
	return nil, err
}

// repair gives the damaged file a second link, marks the mailbox as missing
// entries, and puts the salvaged entries in its place. If it is killed before
// the last step, the file is still damaged and its content has two names;
// nothing is lost.
func (h *holding) repair(data []byte, elems []element, bad *scanError) error {
	if err := errors.Join(h.stillHeld(), h.rested()); err != nil {
		return err
	}
	aside, err := h.keepAside(data)
	if err != nil {
		return fmt.Errorf("the file is damaged %w, and could not be set aside: %w", bad, err)
	}
	if _, err := h.box.writeLack(); err != nil { // before the file looks intact
		return fmt.Errorf("the file is damaged %w, and could not be marked as such: %w", bad, err)
	}
	if err := h.replace(texts(data, elems), true); err != nil {
		return fmt.Errorf("the file is damaged %w, and could not be repaired: %w", bad, err)
	}
	path := h.box.Path()
	return &CorruptError{
		Path:     path,
		Moved:    strings.TrimSuffix(path, h.name) + aside,
		Offset:   bad.off,
		Salvaged: len(elems),
		Torn:     errors.Is(bad, errTruncated),
		Err: team.Errorf(team.CodeInternal, "%s's mailbox is damaged %w", h.box.agent, bad).
			WithReason(team.ReasonCorruptMailbox).
			WithHint("run \"teamctl doctor --repair\" to restore the messages that the ledger has"),
	}
}

// keepAside links the file to <file>.corrupt-<time>, or copies it if the file
// system has no hard links.
func (h *holding) keepAside(data []byte) (string, error) {
	stamp := time.Now().UTC().Format("20060102T150405.000")
	for n := 0; n < 1000; n++ {
		name := fmt.Sprintf("%s.corrupt-%s", h.name, stamp)
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		err := h.root.Link(h.name, name)
		if err == nil {
			return name, nil
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if _, e := h.root.Lstat(name); e == nil {
			continue
		}
		return name, atomicfile.WriteRoot(h.root, name, data, 0o600, true)
	}
	return "", fmt.Errorf("no free name for %s: %w", h.name, fs.ErrExist)
}
