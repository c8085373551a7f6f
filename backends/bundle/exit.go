package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// undecodable is the error of a file that does not have what was written.
type undecodable struct{ error }

func (u undecodable) Unwrap() error { return u.error }

// NoExit reports whether an error of ReadExit says that there is no record: it
// is missing, of another generation, or damaged. After any other error the
// record may well be there, and may be read later.
func NoExit(err error) bool {
	return team.IsCode(err, team.CodeNotFound) || damaged(err)
}

func damaged(err error) bool {
	return errors.As(err, new(undecodable)) || errors.Is(err, regular.ErrNotRegular)
}

// damagedExit follows the name of exit.json in the name under which a damaged
// one is kept.
const damagedExit = ".damaged"

// WriteLostExit records the exit of a generation of which ReadExit has returned
// noRecord. A damaged record is kept aside, and one that may be readable later
// is not replaced.
func WriteLostExit(b team.Bundle, e backends.Exit, noRecord error) error {
	if !NoExit(noRecord) {
		return fmt.Errorf("the record of an exit is not replaced: %w", noRecord)
	}
	if damaged(noRecord) {
		if err := os.Rename(b.Exit(), b.Exit()+damagedExit); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep a damaged record: %w", err)
		}
	}
	return WriteExit(b, e)
}
