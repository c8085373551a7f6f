// Package confine bounds where the commands of an agent may write, by Landlock: below the
// paths that are named, and nowhere else, whatever they start and whoever they run as.
// Reading is not bounded.
//
// Landlock does not see every change: the mode, owner, times and extended attributes of a
// file outside can be changed, and a program outside that takes orders over a socket, such
// as tmux, can be told to write. docs/limits.md says so to people.
package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnsupported means that this kernel cannot confine a command.
var ErrUnsupported = errors.New("this kernel cannot confine commands")

// Confinement is where commands may write. The zero value allows nothing but devices
// without content, such as /dev/null.
type Confinement struct{ write []string }

// New returns a confinement to directories, with everything below them, and to files. All
// of them are absolute and exist; links are followed now. What lies below another of them
// is not looked at again later: a confined command could put a link there.
func New(write ...string) (Confinement, error) {
	var c Confinement
	for _, path := range write {
		if !filepath.IsAbs(path) {
			return c, fmt.Errorf("confine to %s: the path is not absolute", path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return c, fmt.Errorf("confine to %s: %w", path, err)
		}
		c.write = append(c.write, real)
	}
	slices.Sort(c.write) // a directory comes before what lies below it
	var out []string
	for _, path := range c.write {
		if !slices.ContainsFunc(out, func(dir string) bool { return below(dir, path) }) {
			out = append(out, path)
		}
	}
	c.write = out
	return c, nil
}

// below reports whether a path is a directory or lies in it.
func below(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
