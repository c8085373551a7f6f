package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/agent/confine"
	"github.com/teamctl/teamctl/team"
)

// CheckConfine reports why commands cannot be confined on this machine.
func CheckConfine() error { return confine.Supported() }

// bounds returns the confinement of a member's commands and MCP servers: enter confines the thread
// that starts one, temp is their temporary directory. Both are empty for a member that is not
// confined.
func (p *Program) bounds() (enter func() error, temp string, err error) {
	spec := p.Member.Spec
	if !spec.Confine {
		return nil, "", nil
	}
	failed := func(err error) (func() error, string, error) {
		return nil, "", team.Errorf(team.CodeUnavailable, "confine %s: %w", p.Member.Name, err).WithReason(team.ReasonConfine)
	}
	if err := confine.Supported(); err != nil {
		return failed(err)
	}
	temp = p.Team.Layout.Bundle(p.Member.Name).Temp()
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return failed(err)
	}
	write := append([]string{p.Env.Dir, temp}, spec.Writable...)
	git, err := gitDir(p.Env.Dir)
	if err != nil {
		return failed(err)
	}
	if git != "" {
		write = append(write, git)
	}
	c, err := confine.New(write...)
	if err != nil {
		return failed(err)
	}
	return c.Enter, temp, nil
}

// gitDir returns the git directory shared by the worktrees of dir's repository; "" outside a
// repository.
func gitDir(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, ".git")
		fi, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if dir == filepath.Dir(dir) {
				return "", nil
			}
			continue
		case err != nil:
			return "", err
		case fi.IsDir():
			return at, nil
		}
		own, err := named(dir, at, "gitdir: ")
		if err != nil {
			return "", err
		}
		common, err := named(own, filepath.Join(own, "commondir"), "")
		if errors.Is(err, fs.ErrNotExist) { // a submodule's git directory
			return own, nil
		}
		return common, err
	}
}

// named returns the path in a file of git's, relative to dir.
func named(dir, file, prefix string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path := strings.TrimSpace(strings.TrimPrefix(string(b), prefix))
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path, nil
}
