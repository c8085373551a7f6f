package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Problems returns the files of a bundle that cannot be read, with the reason.
// A missing file is not a problem.
func Problems(b team.Bundle) (list []error) {
	fi, err := os.Stat(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return []error{err}
	case !fi.IsDir():
		return []error{fmt.Errorf("%s is not a directory", b)}
	}
	for _, path := range []string{b.Launch(), b.Proc(), b.Group(), b.Pane(), b.Exit(), b.Ready(), b.Backoff(), b.Logger()} {
		_, err := readJSON(path, "", func(any) string { return "" })
		if err != nil && !team.IsCode(err, team.CodeNotFound) {
			list = append(list, err)
		}
	}
	for _, path := range []string{b.Log(), b.RunLock(), b.StartLock()} {
		f, err := regular.Open(path)
		switch {
		case err == nil:
			_ = f.Close() // opened only as a check
		case !errors.Is(err, fs.ErrNotExist):
			list = append(list, fmt.Errorf("read %s: %w", filepath.Base(path), err))
		}
	}
	return list
}
