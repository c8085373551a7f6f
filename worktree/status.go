package worktree

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Status is the state of a worktree. It is complete or there is an error:
// nothing in it is guessed.
type Status struct {
	Path      string   `json:"path"`
	Branch    string   `json:"branch,omitempty"` // "" for a detached HEAD
	Head      string   `json:"head,omitempty"`   // commit; "" on a branch without commits
	Base      string   `json:"base,omitempty"`   // the commit at which it was created; "" if not recorded
	Ahead     int      `json:"ahead"`            // commits since Base; -1 without Base or Head
	Behind    int      `json:"behind"`           // commits of Base missing from HEAD; -1 without Base or Head
	Staged    int      `json:"staged"`           // files that differ between HEAD and index
	Unstaged  int      `json:"unstaged"`         // files that differ between index and disk
	Untracked int      `json:"untracked"`        // files neither tracked nor ignored
	Unmerged  int      `json:"unmerged"`         // files with a conflict
	Changes   []Change `json:"changes,omitempty"`
	Operation string   `json:"operation,omitempty"` // merge, rebase, cherry-pick, revert, bisect; "" if none is in progress
}

// Clean reports whether deleting the directory would lose nothing: no change,
// no untracked file, no operation in progress. It does not consider commits.
func (s Status) Clean() bool { return len(s.Changes) == 0 && s.Operation == "" }

// Change is one file that differs from HEAD. Index and Work are git's letters
// (M, T, A, D, U; "." for none); both are "?" for an untracked file. A rename
// is a D and an A.
type Change struct {
	Path  string `json:"path"` // relative, with slashes; ends with a slash for a nested repository
	Index string `json:"index"`
	Work  string `json:"work"`

	unmerged bool
	sub      string // "S..." for a submodule
	mode     string // of the file on disk, as git sees it
	staged   string // objects in the index; two more for an unmerged file
}

// Nested reports whether the change is a nested repository, whose contents git
// does not report.
func (c Change) Nested() bool { return strings.HasSuffix(c.Path, "/") }

// Status reads the worktree at path, which may be the main one. It writes
// nothing, not even git's own cache.
//
// Errors: path_missing (not found), not_a_worktree (invalid), worktree_unknown
// (conflict), and those of git.
func (r *Repo) Status(ctx context.Context, path string) (Status, error) {
	t, err := r.tree(path)
	if err != nil {
		return Status{}, err
	}
	return r.counted(ctx, t)
}

// counted returns the status including the commits since its base.
func (r *Repo) counted(ctx context.Context, t tree) (Status, error) {
	s, err := t.status(ctx)
	if err != nil || s.Base == "" || s.Head == "" {
		return s, err
	}
	s.Ahead, s.Behind = 0, 0
	if s.Base != s.Head {
		s.Behind, s.Ahead, err = t.leftRight(ctx, s.Base, s.Head)
	}
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

// status returns the status without the commits since its base, which need
// another process: Ahead and Behind are -1.
func (t tree) status(ctx context.Context) (Status, error) { return t.statusWith(ctx, "") }

// statusWith reads the status with another index file, or its own for "".
func (t tree) statusWith(ctx context.Context, index string) (Status, error) {
	c := t.readCall("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--ignore-submodules=none")
	// git 2.17 does not have --no-renames.
	c.conf = []string{"status.renames=false", "diff.renames=false"}
	if index != "" {
		c.env = append(c.env, "GIT_INDEX_FILE="+index)
	}
	out, err := git(ctx, c)
	if err != nil {
		return Status{}, failed("read the status of "+t.at, err)
	}
	s, err := parseStatus(out)
	if err != nil {
		return Status{}, team.Errorf(team.CodeInternal, "read the status of %s: %w", t.at, err).WithReason(ReasonGitFailed)
	}
	s.Path = t.at
	if s.Operation, err = t.operation(); err != nil {
		return Status{}, err
	}
	s.Base, s.Ahead, s.Behind = t.recorded().Base, -1, -1
	return s, nil
}

// changes returns only the list of changes, read with the given index file.
func (t tree) changes(ctx context.Context, index string) ([]Change, error) {
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
		return 0, 0, team.Errorf(team.CodeInternal, "compare %s with its base: git answered %q", t.at, out).WithReason(ReasonGitFailed)
	}
	return left, right, nil
}

// parseStatus parses `git status --porcelain=v2 -z --branch` (git-status(1),
// "Porcelain Format Version 2"). An unknown line is an error.
func parseStatus(out []byte) (Status, error) {
	var s Status
	seen := false
	entries := lines(out, 0)
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		kind, rest, ok := strings.Cut(e, " ")
		if !ok {
			return s, fmt.Errorf("invalid status entry %q", e)
		}
		var c Change
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
			continue
		case "?":
			s.Untracked++
			s.Changes = append(s.Changes, Change{Path: rest, Index: "?", Work: "?"})
			continue
		case "1", "2", "u":
			// <XY> <sub> <modes and objects ...> <path>; a rename is followed
			// by its source path.
			fields := map[string]int{"1": 8, "2": 9, "u": 10}[kind]
			f := strings.SplitN(rest, " ", fields)
			if len(f) != fields || len(f[0]) != 2 {
				return s, fmt.Errorf("invalid status entry %q", e)
			}
			c = Change{Path: f[fields-1], Index: f[0][:1], Work: f[0][1:], sub: f[1], unmerged: kind == "u"}
			if kind == "u" {
				c.mode, c.staged = f[5], strings.Join(f[6:9], " ")
			} else {
				c.mode, c.staged = f[4], f[6]+f[2]+f[3]
			}
			if kind == "2" {
				i++
			}
		default:
			return s, fmt.Errorf("invalid status entry %q", e)
		}
		switch {
		case c.unmerged:
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
		return s, fmt.Errorf("no branch in %s bytes of status", strconv.Itoa(len(out)))
	}
	return s, nil
}

// summary counts the uncommitted changes in a few words.
func (s Status) summary() string {
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
