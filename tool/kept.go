package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Kept is a directory that a forced deletion of its team moved aside because its content could not
// be saved: its repository was missing.
type Kept struct {
	Path    string `json:"path"`
	Restore string `json:"restore"` // command that restores it
}

// keptDir is the directory to which forced deletions move what they cannot save.
func (e *Env) keptDir() string { return filepath.Join(e.Home.Dir, "kept") }

// Kept lists the directories that forced deletions moved aside, by path.
func (e *Env) Kept(ctx context.Context) ([]Kept, error) {
	teams, err := os.ReadDir(e.keptDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []Kept
	for _, d := range teams {
		dir := filepath.Join(e.keptDir(), d.Name())
		entries, readErr := os.ReadDir(dir)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			list = append(list, Kept{Path: path, Restore: restoreKept(ctx, path)})
		}
	}
	if err != nil {
		return list, team.Errorf(team.CodeUnavailable, "list kept directories: %w", err)
	}
	return list, nil
}

// restoreKept returns the command that makes a directory usable again: git's own for a worktree
// whose repository exists, else a plain move.
func restoreKept(ctx context.Context, path string) string {
	if root := worktree.RepoOf(ctx, path); root != "" {
		return "git -C " + team.ShellQuote(root) + " worktree repair " + team.ShellQuote(path)
	}
	return "mv " + team.ShellQuote(path) + " ."
}

// keptChecks reports the directories moved aside.
func (e *Env) keptChecks(ctx context.Context) []Check {
	list, err := e.Kept(ctx)
	if err != nil {
		return []Check{checked("kept", "%v", err).fail("ls -lR " + team.ShellQuote(e.keptDir()))}
	}
	checks := make([]Check, len(list))
	for i, k := range list {
		checks[i] = checked("kept", "%s, of a deleted team", k.Path).warn(k.Restore)
	}
	return checks
}
