package worktree

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Status reads the worktree at path, which may be the main one. It writes
// nothing, not even git's own cache.
//
// Errors: path_missing (not found), not_a_worktree (invalid), worktree_unknown
// (conflict), and those of git.
func (r *Repo) Status(ctx context.Context, path string) (team.WorktreeStatus, error) {
	t, err := r.tree(path)
	if err != nil {
		return team.WorktreeStatus{}, err
	}
	return r.counted(ctx, t)
}

// HeadOf returns the commit at HEAD of the worktree at path, or "" if its branch
// has none yet. Unlike Status, it does not look at the files.
func (r *Repo) HeadOf(ctx context.Context, path string) (string, error) {
	t, err := r.tree(path)
	if err != nil {
		return "", err
	}
	if _, tip, known := t.headRef(); known {
		return tip, nil
	}
	head, err := t.head(ctx)
	if team.ReasonOf(err) == team.ReasonUnbornHead {
		return "", nil
	}
	return head, err
}

// counted returns the status including the commits since its base.
func (r *Repo) counted(ctx context.Context, t tree) (team.WorktreeStatus, error) {
	s, err := t.status(ctx)
	if err != nil || s.Base == "" || s.Head == "" {
		return s, err
	}
	s.Ahead, s.Behind = 0, 0
	if s.Base != s.Head {
		s.Behind, s.Ahead, err = t.leftRight(ctx, s.Base, s.Head)
	}
	if err != nil {
		return team.WorktreeStatus{}, err
	}
	return s, nil
}

// status returns the status without the commits since its base, which need
// another process: Ahead and Behind are -1.
func (t tree) status(ctx context.Context) (team.WorktreeStatus, error) { return t.statusWith(ctx, "") }

// statusWith reads the status with another index file, or its own for "".
func (t tree) statusWith(ctx context.Context, index string) (team.WorktreeStatus, error) {
	s, _, err := t.statusAnd(ctx, index)
	return s, err
}

// statusIgnored is statusWith, and returns what ignored returns in the same
// look. A directory of which git ignores each file, but not the directory, is
// listed by its files.
func (t tree) statusIgnored(ctx context.Context, index string) (team.WorktreeStatus, []string, error) {
	return t.statusAnd(ctx, index, "--ignored=matching")
}

func (t tree) statusAnd(ctx context.Context, index string, more ...string) (_ team.WorktreeStatus, ignored []string, err error) {
	c := t.readCall(append([]string{"status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--ignore-submodules=none"}, more...)...)
	// git 2.17 does not have --no-renames.
	c.conf = []string{"status.renames=false", "diff.renames=false"}
	if index != "" {
		c.env = append(c.env, "GIT_INDEX_FILE="+index)
	}
	out, err := git(ctx, c)
	if err != nil {
		return team.WorktreeStatus{}, nil, failed("read the status of "+t.at, err)
	}
	s, ignored, err := parseStatus(out)
	if err != nil {
		return team.WorktreeStatus{}, nil, team.Errorf(team.CodeInternal, "read the status of %s: %w", t.at, err).WithReason(team.ReasonGitFailed)
	}
	s.Path = t.at
	if s.Operation, err = t.operation(); err != nil {
		return team.WorktreeStatus{}, nil, err
	}
	s.Base, s.Ahead, s.Behind = t.recorded().Base, -1, -1
	return s, ignored, nil
}

// changes returns only the list of changes, read with the given index file.
func (t tree) changes(ctx context.Context, index string) ([]team.FileChange, error) {
	s, err := t.statusWith(ctx, index)
	return s.Changes, err
}

// leftRight counts the commits that only a contains and those that only b
// contains.
func (t tree) leftRight(ctx context.Context, a, b string) (left, right int, err error) {
	out, err := t.read(ctx, "rev-list", "--left-right", "--count", a+"..."+b)
	if err != nil {
		return 0, 0, failed("compare "+t.at+" with its base", err)
	}
	if _, err := fmt.Sscan(string(out), &left, &right); err != nil {
		return 0, 0, team.Errorf(team.CodeInternal, "compare %s with its base: git answered %q", t.at, out).WithReason(team.ReasonGitFailed)
	}
	return left, right, nil
}

// parseStatus parses `git status --porcelain=v2 -z --branch` (git-status(1),
// "Porcelain Format Version 2"), with the ignored paths. An unknown line is an
// error.
func parseStatus(out []byte) (s team.WorktreeStatus, ignored []string, err error) {
	seen := false
	entries := lines(out, 0)
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		kind, rest, ok := strings.Cut(e, " ")
		if !ok {
			return s, nil, fmt.Errorf("invalid status entry %q", e)
		}
		var c team.FileChange
		switch kind {
		case "#":
			key, val, _ := strings.Cut(rest, " ")
			if key == "branch.oid" && val != "(initial)" {
				s.Head = val
			}
			if key == "branch.head" {
				seen = true
				if val != "(detached)" {
					s.Branch = val
				}
			}
			continue
		case "!":
			ignored = append(ignored, rest)
			continue
		case "?":
			s.Untracked++
			s.Changes = append(s.Changes, team.FileChange{Path: rest, Index: "?", Work: "?"})
			continue
		case "1", "2", "u":
			// <XY> <sub> <modes and objects ...> <path>; a rename is followed
			// by its source path.
			fields := map[string]int{"1": 8, "2": 9, "u": 10}[kind]
			f := strings.SplitN(rest, " ", fields)
			if len(f) != fields || len(f[0]) != 2 {
				return s, nil, fmt.Errorf("invalid status entry %q", e)
			}
			c = team.FileChange{Path: f[fields-1], Index: f[0][:1], Work: f[0][1:], Sub: f[1], Unmerged: kind == "u"}
			if kind == "u" {
				c.Mode, c.Objects = f[5], strings.Join(f[6:9], " ")
			} else {
				c.Mode, c.Objects = f[4], f[6]+f[2]+f[3]
			}
			if kind == "2" {
				i++
			}
		default:
			return s, nil, fmt.Errorf("invalid status entry %q", e)
		}
		switch {
		case c.Unmerged:
			s.Unmerged++
		default:
			if c.Index != "." {
				s.Staged++
			}
			if c.Work != "." {
				s.Unstaged++
			}
		}
		s.Changes = append(s.Changes, c)
	}
	if !seen {
		return s, nil, fmt.Errorf("no branch in %s bytes of status", strconv.Itoa(len(out)))
	}
	return s, ignored, nil
}

// summary counts the uncommitted changes in a few words.
func summary(s team.WorktreeStatus) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Unmerged, "in conflict"}, {s.Staged, "staged"}, {s.Unstaged, "changed"}, {s.Untracked, "untracked"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	out := strings.Join(parts, ", ")
	if s.Operation != "" {
		out = strings.TrimPrefix(out+", a "+s.Operation+" under way", ", ")
	}
	const most = 5
	var names []string
	for _, c := range s.Changes {
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, strconv.Quote(c.Path))
	}
	if len(names) > 0 {
		out += " (" + strings.Join(names, " ") + ")"
	}
	return out
}
