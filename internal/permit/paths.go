package permit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// spelled reports whether a pattern names a file as it was written, whatever its case:
// for rules that deny.
func (r Request) spelled(pattern, file string) bool {
	return matchBelow(r.Dir, strings.ToLower(pattern), r.absolute(file), strings.ToLower)
}

// really reports whether a pattern names the file that a path leads to. Who asks may
// have made links: the path as it is written allows nothing.
func (r Request) really(pattern, file string, fold func(string) string) matched {
	file = filepath.ToSlash(file)
	if !filepath.IsAbs(file) && r.Dir == "" || slices.Contains(strings.Split(file, "/"), "..") {
		return unknown // behind a link ".." is not what it looks like
	}
	real, err := resolve(r.absolute(file))
	if err != nil {
		return unknown
	}
	dir := r.Dir
	if filepath.IsAbs(pattern) {
		dir, pattern = doublestar.SplitPattern(pattern)
	}
	if dir, err = resolve(filepath.Clean(dir)); err != nil {
		return unknown
	}
	if matchBelow(dir, fold(pattern), real, fold) {
		return match
	}
	return noMatch
}

func (r Request) absolute(file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(r.Dir, file)
}

// matchBelow matches a file against a pattern that is absolute or begins at dir.
func matchBelow(dir, pattern, file string, fold func(string) string) bool {
	if !filepath.IsAbs(pattern) {
		rel, err := filepath.Rel(dir, file)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return false
		}
		file = rel
	}
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "./"), fold(filepath.ToSlash(file)))
	return err == nil && ok
}

// resolve follows every symbolic link of a path, of which the end may not exist yet.
func resolve(file string) (string, error) {
	rest := ""
	for at := file; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", err
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return "", err // a link to a missing file: its target is unknown
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
