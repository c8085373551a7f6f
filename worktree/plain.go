package worktree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// plain finds the repository of a worktree whose files leave git no choice: it
// is asked for in most commands and in most steps of a supervisor, and git
// answers from the same files. It returns false whenever git might answer
// differently or not at all; then git decides. dir is a real path.
//
// A plain repository is non-bare and in format 0, without extensions, included
// files or core.worktree. Its directories belong to this user, so that no
// safe.directory is needed.
func (r *Repo) plain(dir string) bool {
	if _, err := exec.LookPath("git"); err != nil {
		return false
	}
	at := filepath.Join(dir, ".git")
	info, err := os.Lstat(at)
	if err != nil || !owned(dir) || !owned(at) {
		return false
	}
	root, admin, common := dir, at, at
	_, err = os.Lstat(filepath.Join(at, "commondir"))
	switch {
	case info.IsDir() && errors.Is(err, fs.ErrNotExist):
	case info.Mode().IsRegular():
		if admin, err = adminOf(dir); err != nil {
			return false
		}
		data, err := os.ReadFile(filepath.Join(admin, "commondir"))
		if err != nil || len(bytes.TrimRight(data, "\n")) == 0 {
			return false
		}
		// git takes a common directory's parent for the main worktree only if
		// it has this name.
		common, err = realPath(admin, string(bytes.TrimRight(data, "\n")))
		if err != nil || filepath.Base(common) != ".git" {
			return false
		}
		root = filepath.Dir(common)
	default:
		return false
	}
	for _, sub := range []string{"objects", "refs"} {
		p := filepath.Join(common, sub)
		if info, err := os.Stat(p); err != nil || !info.IsDir() || unix.Access(p, unix.X_OK) != nil {
			return false
		}
	}
	if !owned(admin) || !owned(common) || !plainHead(admin) || !plainConfig(filepath.Join(common, "config")) {
		return false
	}
	r.root, r.common, r.bare = root, common, false
	return true
}

// owned reports whether a file, not a link, belongs to this user.
func owned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// plainHead reports whether the HEAD of a git directory names a branch or a
// commit.
func plainHead(admin string) bool {
	data, err := os.ReadFile(filepath.Join(admin, "HEAD"))
	return err == nil && (headBranch(data) != "" || objectID(data) != "")
}

// plainConfig reports whether a configuration file describes a plain repository
// in the words that git writes. What else it may have does not matter where a
// repository is.
func plainConfig(path string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	const bare, format = "\tbare = false\n", "\trepositoryformatversion = 0\n"
	text := strings.ToLower(string(data))
	if !strings.HasPrefix(text, "[core]\n") || !strings.Contains(text, bare) || !strings.Contains(text, format) || strings.Contains(text, "\\\n") {
		return false
	}
	// Wherever one of these words is, it may be a setting.
	rest := strings.Replace(strings.Replace(text, bare, "", 1), format, "", 1)
	for _, word := range []string{"bare", "repositoryformatversion", "worktree", "extensions", "include", "\r", "\x00"} {
		if strings.Contains(rest, word) {
			return false
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' || line[0] == '[' && line[len(line)-1] == ']' {
			continue
		}
		if line[0] < 'a' || line[0] > 'z' { // git may not accept it
			return false
		}
	}
	return true
}
