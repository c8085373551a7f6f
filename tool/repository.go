package tool

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// RepositoryOf returns the top directory of the repository that contains a file, "" if there is
// none.
func RepositoryOf(file string) (string, error) {
	real, err := realPath(file)
	if err != nil {
		return "", err
	}
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		if is, err := IsRepository(dir); err != nil {
			return "", team.Errorf(team.CodeUnavailable, "look for the repository of %s: %w", file, err)
		} else if is {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// IsRepository reports whether a directory is the top of a repository. Like git, it ignores an
// empty .git directory, which agents' sandboxes leave in /tmp.
func IsRepository(dir string) (bool, error) {
	path := filepath.Join(dir, ".git")
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !fi.IsDir() {
		return err == nil, err
	}
	es, err := os.ReadDir(path)
	return len(es) > 0, err
}

// liesIn reports whether a team file is part of a repository of its team.
func liesIn(file string, made TeamCreateOut) (bool, error) {
	roots := slices.Collect(maps.Values(made.Repos))
	if made.Repo != "" {
		roots = append(roots, made.Repo)
	}
	file, err := realPath(file)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(file, root+string(filepath.Separator)) }) {
		return true, nil
	}
	repo, err := RepositoryOf(file)
	return repo != "", err
}

// realPath returns the absolute path of a file without symbolic links.
func realPath(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "resolve %s: %w", file, err)
	}
	return abs, nil
}

// absolute resolves a path from a team file; "" stays empty.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "resolve %q: %w", path, err)
	}
	return abs, nil
}

// besides resolves a path relative to the file that contains it; "" stays empty.
func besides(file, path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	return absolute(filepath.Join(filepath.Dir(file), path))
}
