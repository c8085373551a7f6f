package team

import (
	"fmt"
	"strings"
	"time"
)

// WorktreeSetUp is the result of a setup.
type WorktreeSetUp struct {
	Copied    int      `json:"copied"`    // files
	Reflinked int      `json:"reflinked"` // of those, sharing disk blocks with the original
	Linked    []string `json:"linked,omitempty"`
	Ran       []Ran    `json:"ran,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// Ran is the result of a command.
type Ran struct {
	Run     string        `json:"run"`
	Status  int           `json:"status"` // exit status; -1 if a signal ended it
	TimeOut bool          `json:"timeOut,omitempty"`
	Took    time.Duration `json:"took"`
	Tail    string        `json:"tail,omitempty"` // the last lines of its output
}

// OK reports whether the command ended by itself with status 0.
func (r Ran) OK() bool { return r.Status == 0 && !r.TimeOut }

// Why describes how the command failed.
func (r Ran) Why() string {
	switch {
	case r.TimeOut:
		return fmt.Sprintf("took longer than %s", r.Took.Round(time.Second))
	case r.Status < 0:
		return "was ended by a signal"
	}
	return fmt.Sprintf("exit status %d", r.Status)
}

// LaneItem is one branch to merge into the target.
type LaneItem struct {
	Key    int64
	Name   string // of the owner, for messages
	Branch string
	Tip    string // commit
}

// LaneState is the kind of a note.
type LaneState string

// States of a lane. LaneLanding is noted before the target moves.
const (
	LaneGating    LaneState = "gating"
	LaneLanding   LaneState = "landing"
	LaneLanded    LaneState = "landed"
	LaneContained LaneState = "contained"
	LaneConflict  LaneState = "conflict"
	LaneRed       LaneState = "red"
)

// LaneNote is one step of a lane.
type LaneNote struct {
	State LaneState  `json:"state"`
	Items []LaneItem `json:"items"`
	Old   string     `json:"old,omitempty"`   // landing, landed: previous commit of the target
	New   string     `json:"new,omitempty"`   // new commit of the target
	Onto  string     `json:"onto,omitempty"`  // conflict: the commit it conflicts with
	Files []string   `json:"files,omitempty"` // conflict
	Ran   Ran        `json:"ran"`             // red
	Log   string     `json:"log,omitempty"`   // red
}

// WorktreeView is the state of a worktree relative to others. If Err is set the
// worktree could not be read and the other fields are meaningless.
type WorktreeView struct {
	WorktreeStatus
	ToTarget   int      `json:"toTarget"`            // commits missing from the target; -1 without a target
	FromTarget int      `json:"fromTarget"`          // commits of the target missing from HEAD; -1 without a target
	Unpushed   int      `json:"unpushed"`            // commits on no remote; -1 if there is no remote
	Conflicts  []string `json:"conflicts,omitempty"` // files in which merging HEAD into the target would conflict
	Foreseen   bool     `json:"conflictsForeseen"`   // false: this version of git cannot determine conflicts
	DiskBytes  int64    `json:"diskBytes,omitempty"` // with LookIn.Disk
	Err        error    `json:"-"`
	Problem    string   `json:"problem,omitempty"` // Err, for JSON
}

// PullText is the material for a pull request of a branch.
type PullText struct {
	Subjects []string `json:"subjects"` // of the commits missing from the target, oldest first
	Stat     string   `json:"stat"`
	Remote   string   `json:"remote,omitempty"` // the remote to push to; "" without a remote
	URL      string   `json:"url,omitempty"`    // of the remote, without a password
	Pushed   bool     `json:"pushed"`           // the remote already has this commit, according to the remote-tracking refs
}

// SavedWork is one saved state of a worktree.
type SavedWork struct {
	Ref    string    `json:"ref"`
	Kind   string    `json:"kind"`
	Team   string    `json:"team"`
	Agent  string    `json:"agent"`
	At     time.Time `json:"at"`
	Commit string    `json:"commit"`
	Head   string    `json:"head"` // the commit that was checked out
	Clean  bool      `json:"clean"`
	What   string    `json:"what,omitempty"`
}

// WorktreeStatus is the state of a worktree. It is complete or there is an error:
// nothing in it is guessed.
type WorktreeStatus struct {
	Path      string       `json:"path"`
	Branch    string       `json:"branch,omitempty"` // "" for a detached HEAD
	Head      string       `json:"head,omitempty"`   // commit; "" on a branch without commits
	Base      string       `json:"base,omitempty"`   // the commit at which it was created; "" if not recorded
	Ahead     int          `json:"ahead"`            // commits since Base; -1 without Base or Head
	Behind    int          `json:"behind"`           // commits of Base missing from HEAD; -1 without Base or Head
	Staged    int          `json:"staged"`           // files that differ between HEAD and index
	Unstaged  int          `json:"unstaged"`         // files that differ between index and disk
	Untracked int          `json:"untracked"`        // files neither tracked nor ignored
	Unmerged  int          `json:"unmerged"`         // files with a conflict
	Changes   []FileChange `json:"changes,omitempty"`
	Operation string       `json:"operation,omitempty"` // merge, rebase, cherry-pick, revert, bisect; "" if none is in progress
}

// Clean reports whether deleting the directory would lose nothing: no change,
// no untracked file, no operation in progress. It does not consider commits.
func (s WorktreeStatus) Clean() bool { return len(s.Changes) == 0 && s.Operation == "" }

// FileChange is one file that differs from HEAD. Index and Work are git's letters
// (M, T, A, D, U; "." for none); both are "?" for an untracked file. A rename
// is a D and an A.
type FileChange struct {
	Path  string `json:"path"` // relative, with slashes; ends with a slash for a nested repository
	Index string `json:"index"`
	Work  string `json:"work"`

	Unmerged bool   `json:"-"`
	Sub      string `json:"-"` // "S..." for a submodule
	Mode     string `json:"-"` // of the file on disk, as git sees it
	Objects  string `json:"-"` // in the index; two more for an unmerged file
}

// Nested reports whether the change is a nested repository, whose contents git
// does not report.
func (c FileChange) Nested() bool { return strings.HasSuffix(c.Path, "/") }
