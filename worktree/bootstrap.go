package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// IncludeFile is the file in the main worktree that lists, in .gitignore
// syntax, the ignored files to copy into a new worktree, such as .env.
const IncludeFile = ".worktreeinclude"

// SetupIn configures what a new worktree gets besides the files of its commit.
type SetupIn struct {
	Path  string
	Copy  []string      // directories and files of the main worktree to copy; must be ignored
	Link  []string      // the same, as symbolic links: the worktrees share the files and any changes to them
	Run   []string      // commands, in order; the first failure ends the setup
	Env   []string      // for the commands
	Limit time.Duration // per command
	Log   string        // file to which their output is appended
	Book  run.Book      // where running commands are recorded
	// Resting reports whether the worktree is known to be idle; nil means that
	// it is. Setup calls it before and after. A file that appears while a
	// member is at work may be the member's, so it counts as work.
	Resting func() bool `json:"-"`
}

func (in SetupIn) command(t tree, scope *run.Scope, command string) Command {
	return Command{Run: command, Dir: t.path, Env: in.Env, Limit: in.Limit, Log: in.Log, Scope: scope}
}

// Setup adds to a worktree what git does not: the ignored files that the main
// worktree's .worktreeinclude names, dependency directories, and the results of
// the setup commands. It never overwrites an existing file, and never adds a
// file that git would report as a change. Setup may be repeated.
//
// Errors: main_worktree (denied), setup_failed (conflict), disk_full.
func (r *Repo) Setup(ctx context.Context, in SetupIn) (out team.WorktreeSetUp, err error) {
	t, err := r.tree(in.Path)
	if err == nil {
		err = t.notMain("set up")
	}
	if err != nil {
		return out, err
	}
	_, _ = in.Book.Sweep(ctx) // a killed setup may have left commands running; doctor reports those that do not end
	made := r.making(ctx, t, in)
	var added []string
	err = r.setup(ctx, t, in, &out, &added)
	if e := made.end(ctx, added, err == nil); err == nil && e != nil {
		err = noSpace(e)
	}
	return out, err
}

func (r *Repo) setup(ctx context.Context, t tree, in SetupIn, out *team.WorktreeSetUp, added *[]string) error {
	if !r.bare {
		if err := r.copyIn(ctx, t, in, out, added); err != nil {
			return err
		}
	}
	r.step("brought")
	return runAll(in.Book, run.Setup, t.path, in.Run, func(scope *run.Scope, command string) error {
		ran, err := RunCommand(ctx, in.command(t, scope, command))
		out.Ran = append(out.Ran, ran)
		if err == nil && !ran.OK() {
			err = setupFailed(ran, t.path, in.Log)
		}
		return err
	})
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// IsSetUp reports whether Setup has completed in the worktree.
func (r *Repo) IsSetUp(path string) (bool, error) {
	t, err := r.tree(path)
	return err == nil && t.recorded().SetUp, err
}

// copyIn copies and links files from the main worktree and appends to added
// each file and link that it makes.
func (r *Repo) copyIn(ctx context.Context, t tree, in SetupIn, out *team.WorktreeSetUp, added *[]string) error {
	files, err := r.included(ctx)
	if err != nil {
		return err
	}
	to, err := os.OpenRoot(t.path) // a Root does not follow links out of the worktree
	if err != nil {
		return noSpace(err)
	}
	defer func() { _ = to.Close() }()
	from, err := os.OpenRoot(r.root)
	if err != nil {
		return noSpace(err)
	}
	defer func() { _ = from.Close() }()
	for _, name := range in.Copy {
		list, note, err := r.wanted(ctx, t, from, name)
		if err != nil {
			return err
		}
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
		files = append(files, list...)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return ended("set up", t.path, err)
		}
		n := out.Copied
		if err := r.copyFile(from, to, f, out); err != nil {
			return noSpace(fmt.Errorf("copy %s to %s: %w", f, t.path, err))
		}
		if out.Copied > n {
			*added = append(*added, f)
		}
	}
	n := len(out.Linked)
	for _, name := range in.Link {
		if err := r.link(ctx, t, from, to, name, out); err != nil {
			return err
		}
	}
	for _, l := range out.Linked[n:] {
		*added = append(*added, filepath.ToSlash(l))
	}
	return nil
}

// included returns the ignored files that the include file of the main worktree
// names.
func (r *Repo) included(ctx context.Context) ([]string, error) {
	patterns := filepath.Join(r.root, IncludeFile)
	if info, err := os.Lstat(patterns); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	} else if err != nil {
		return nil, conflict(team.ReasonWorktreeUnknown, "check %s: %w", patterns, err)
	}
	out, err := r.read(ctx, "ls-files", "--others", "--ignored", "--exclude-from="+patterns, "-z")
	if err != nil {
		return nil, failed("read "+patterns, err)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return ignoredOf(ctx, call{dir: r.root, read: true}, lines(out, 0))
}

// ignoredOf returns those of paths that git ignores.
func ignoredOf(ctx context.Context, c call, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	c.args, c.stdin = []string{"check-ignore", "-z", "--stdin"}, []byte(strings.Join(paths, "\x00")+"\x00")
	out, err := git(ctx, c)
	if err != nil && exitStatus(err) != 1 {
		return nil, failed("list ignored files in "+c.dir, err)
	}
	return lines(out, 0), nil
}

// wanted returns the files at or below a path of the main worktree that are
// ignored in the new one.
func (r *Repo) wanted(ctx context.Context, t tree, from *os.Root, name string) (files []string, note string, err error) {
	clean, err := inside(name)
	if err != nil {
		return nil, "", err
	}
	err = fs.WalkDir(from.FS(), filepath.ToSlash(clean), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files = append(files, p)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, name + " is not in " + r.root, nil
	}
	if err != nil {
		return nil, "", conflict(team.ReasonWorktreeUnknown, "read %s: %w", filepath.Join(r.root, clean), err)
	}
	ignored, err := ignoredOf(ctx, t.readCall(), files)
	if err == nil && len(ignored) < len(files) {
		note = fmt.Sprintf("%d files of %s are not ignored, and were not copied", len(files)-len(ignored), name)
	}
	return ignored, note, err
}

// inside rejects a path that leads out of a worktree or into .git.
func inside(name string) (string, error) {
	clean := filepath.Clean(name)
	first, _, _ := strings.Cut(filepath.ToSlash(clean), "/")
	if name == "" || clean == "." || !filepath.IsLocal(clean) || strings.EqualFold(first, ".git") {
		return "", invalid(team.ReasonInvalidPath, "%q is not a path inside the repository", name)
	}
	return clean, nil
}

// copyFile copies one file or link with its mode. It does not replace an
// existing file.
func (r *Repo) copyFile(from, to *os.Root, name string, out *team.WorktreeSetUp) error {
	info, err := from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted since it was listed
	}
	if err != nil {
		return err
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		if err := to.Symlink(target, name); err != nil {
			return unlessThere(err)
		}
		out.Copied++
		return nil
	case !info.Mode().IsRegular():
		return nil
	}
	src, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return unlessThere(err)
	}
	if r.clone(dst, src) == nil {
		out.Reflinked++
	} else {
		_, err = io.Copy(dst, src)
	}
	if closing := dst.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = to.Remove(name) // the next setup would take a partial file for a complete one
		return err
	}
	out.Copied++
	return nil
}

func unlessThere(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// link makes a symbolic link to a path of the main worktree, unless git would
// report the link as a change: a pattern such as "node_modules/" does not match
// a link.
func (r *Repo) link(ctx context.Context, t tree, from, to *os.Root, name string, out *team.WorktreeSetUp) error {
	clean, err := inside(name)
	if err != nil {
		return err
	}
	if _, err := from.Lstat(clean); errors.Is(err, fs.ErrNotExist) {
		out.Notes = append(out.Notes, name+" is not in "+r.root)
		return nil
	}
	if dir := filepath.Dir(clean); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return noSpace(err)
		}
	}
	err = to.Symlink(filepath.Join(r.root, clean), clean)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return noSpace(err)
	}
	ignored, err := ignoredOf(ctx, t.readCall(), []string{filepath.ToSlash(clean)})
	if err != nil {
		return err
	}
	if len(ignored) == 0 {
		out.Notes = append(out.Notes, name+" is not ignored as a link, and was not linked: write "+strings.TrimSuffix(name, "/")+" without a slash into .gitignore")
		return noSpaceOrNil(to.Remove(clean))
	}
	out.Linked = append(out.Linked, clean)
	return nil
}

// Teardown runs the commands that undo the effects of a setup outside the
// worktree, before the worktree is removed. It runs every command even if one
// fails.
func (r *Repo) Teardown(ctx context.Context, in SetupIn) (ran []team.Ran, err error) {
	t, err := r.tree(in.Path)
	if err != nil {
		return nil, err
	}
	var failed error
	err = runAll(in.Book, "teardown", t.path, in.Run, func(scope *run.Scope, command string) error {
		one, err := RunCommand(ctx, in.command(t, scope, command))
		ran = append(ran, one)
		if err == nil && !one.OK() {
			err = setupFailed(one, t.path, in.Log)
		}
		if failed == nil {
			failed = err
		}
		return nil
	})
	if failed != nil {
		err = failed
	}
	return ran, err
}

// setupFailed returns the error for a failed setup or teardown command.
func setupFailed(r team.Ran, dir, log string) error {
	why := r.Why()
	if last := lastLine(r.Tail); last != "" {
		why += ": " + last
	}
	return conflict(team.ReasonSetup, "the command %q failed in %s: %s", r.Run, dir, why).WithHint("see " + log)
}
