// Package confine restricts where the commands of an agent may write, with Landlock: only below
// named paths, whatever they start and whichever user they run as. Reading is not restricted.
//
// Landlock does not cover every change: the mode, owner, times and extended attributes of outside
// files can be changed, and an outside program that takes commands over a socket, such as tmux,
// can be told to write. docs/limits.md documents this.
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

// Confinement is the set of paths to which commands may write. The zero value permits only devices
// without content, such as /dev/null.
type Confinement struct{ write []string }

// New returns a confinement to directories, with everything below them, and to files. All of them
// are absolute and exist; links are resolved now. A path below another one is not resolved again
// later, since a confined command could put a link there.
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
	slices.Sort(c.write) // a directory precedes the paths below it
	var out []string
	for _, path := range c.write {
		if !slices.ContainsFunc(out, func(dir string) bool { return below(dir, path) }) {
			out = append(out, path)
		}
	}
	c.write = out
	return c, nil
}

// below reports whether a path is dir or below it.
func below(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
