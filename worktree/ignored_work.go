package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// rebuildable are directories whose contents tools generate from the
// repository. Ignored files in one are not work.
var rebuildable = []string{
	"node_modules", "bower_components", ".yarn", ".pnpm-store", ".npm", // JavaScript
	".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache", ".angular", ".vite",
	"venv", ".venv", "__pycache__", ".tox", ".nox", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".eggs", ".ipynb_checkpoints", // Python
	"target", ".gradle", ".m2", // Rust, Java
	"vendor", "Pods", "DerivedData", ".build", ".dart_tool", "elm-stuff", "deps", "_build", ".stack-work", "dist-newstyle",
	"build", "dist", "out", "obj", "bin", "tmp", ".tmp", ".cache", "coverage", ".nyc_output", "htmlcov", ".terraform", ".direnv",
}

// caches are suffixes of files that programs leave behind and regenerate.
var caches = []string{".pyc", ".pyo", ".o", ".obj", ".a", ".so", ".class", ".test", ".DS_Store", "Thumbs.db", ".tsbuildinfo", ".eslintcache", ".swp"}

// isRebuildable reports whether a path (relative, with slashes) is in a
// rebuildable directory or is a cache file.
func isRebuildable(path string) bool {
	parts := strings.Split(path, "/")
	if slices.ContainsFunc(parts[:len(parts)-1], func(d string) bool {
		return slices.Contains(rebuildable, d) || strings.HasSuffix(d, ".egg-info")
	}) {
		return true
	}
	return slices.ContainsFunc(caches, func(end string) bool { return strings.HasSuffix(path, end) })
}

// ignoredWork returns the ignored files of t that exist nowhere else: those
// that differ from the main checkout (the source of .worktreeinclude), differ
// from what the setup made, and cannot be rebuilt. Paths are relative, with
// slashes, sorted.
func (r *Repo) ignoredWork(ctx context.Context, t tree) ([]string, error) {
	if t.main {
		return nil, nil
	}
	ignored, err := t.ignored(ctx)
	if err != nil {
		return nil, err
	}
	return r.workAmong(ctx, t, ignored)
}

// workAmong is ignoredWork for the ignored paths of a linked worktree.
func (r *Repo) workAmong(ctx context.Context, t tree, ignored []string) ([]string, error) {
	var found []string
	rec := t.recorded()
	add := func(rel string, mode fs.FileMode) error {
		if isRebuildable(rel) || t.madeBySetup(rec, rel) || !mode.IsRegular() && mode&fs.ModeSymlink == 0 {
			return nil
		}
		same, err := r.inMain(t, rel, mode)
		if err == nil && !same {
			found = append(found, rel)
		}
		return err
	}
	for _, name := range ignored {
		root := filepath.Join(t.path, filepath.FromSlash(name))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // a build removes its temporary files
				return nil
			}
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(t.path, p)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			if d.IsDir() {
				// nested inspects a nested repository.
				if isRebuildable(rel+"/x") || isGitDir(filepath.Join(p, ".git")) {
					return fs.SkipDir
				}
				return nil
			}
			return add(rel, d.Type())
		})
		if err != nil && ctx.Err() == nil {
			return nil, conflict(team.ReasonWorktreeUnknown, "list ignored files of %s: %w", t.at, err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), ctx.Err()
}

// inMain reports whether the main checkout has the same file as t. A symbolic
// link counts by its path alone: it may be relative.
func (r *Repo) inMain(t tree, rel string, mode fs.FileMode) (bool, error) {
	if r.bare {
		return false, nil
	}
	there := filepath.Join(r.root, filepath.FromSlash(rel))
	if mode&fs.ModeSymlink != 0 {
		_, err := os.Lstat(there)
		return err == nil, nil
	}
	info, err := os.Stat(there)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	return sameBytes(filepath.Join(t.path, filepath.FromSlash(rel)), there)
}

// sameBytes compares two regular files. A file that cannot be read is
// different.
func sameBytes(a, b string) (bool, error) {
	fa, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = fa.Close() }()
	fb, err := os.Open(b)
	if err != nil {
		return false, nil
	}
	defer func() { _ = fb.Close() }()
	sa, errA := fa.Stat()
	sb, errB := fb.Stat()
	if errA != nil || errB != nil || sa.Size() != sb.Size() {
		return false, errA
	}
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		na, errA := io.ReadFull(fa, bufA)
		nb, errB := io.ReadFull(fb, bufB)
		if na != nb || !bytes.Equal(bufA[:na], bufB[:nb]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			end := func(err error) bool {
				return err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			}
			if !end(errA) {
				return false, errA
			}
			return end(errB), nil
		}
	}
}
