package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// checkpointsKept is the number of checkpoints kept per member.
const checkpointsKept = 20

// racyTime is the minimum age of a file whose timestamps prove that it is
// unchanged: two writes within one clock tick get the same timestamp.
const racyTime = 50 * time.Millisecond

// stampFile, in the admin directory, records what the last checkpoint saw.
const stampFile = "teamctl-checkpoint.json"

type stamp struct {
	Print  string `json:"print,omitempty"` // of the status and the changed files; "" if they were too new
	Commit string `json:"commit"`
	Tree   string `json:"tree,omitempty"`
	Ref    string `json:"ref"`
	// Ahead is the latest date of a checkpoint that was there when Ref was made, if that is later: the
	// clock has been set back in between.
	Ahead time.Time `json:"ahead,omitzero"`
}

// Checkpoint saves the state of a member's worktree to a private ref if it has
// changed since the last checkpoint, and keeps the newest twenty. It does not
// touch index or files. An unchanged worktree costs one git status: Checkpoint
// compares the status and the size and times of the changed files. (A file
// hidden from git by assume-unchanged is saved with the next other change.)
//
// Checkpoint returns the ref and whether it is new.
func (r *Repo) Checkpoint(ctx context.Context, path, teamKey, agent, why string) (ref string, fresh bool, err error) {
	return r.CheckpointNoting(ctx, path, teamKey, agent, why, nil)
}

// CheckpointNoting is Checkpoint. For a new checkpoint it calls note with what
// the worktree has changed since its branch began. An error of note does not
// prevent the checkpoint.
func (r *Repo) CheckpointNoting(ctx context.Context, path, teamKey, agent, why string, note func(Touched) error) (ref string, fresh bool, err error) {
	if err := checkOwner(teamKey, agent); err != nil {
		return "", false, err
	}
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("checkpoint")
	}
	if err != nil {
		return "", false, err
	}
	began := time.Now()
	st, err := t.status(ctx)
	if err != nil {
		return "", false, err
	}
	return r.checkpoint(ctx, t, st, began, teamKey, agent, why, note)
}

// checkpoint is CheckpointNoting with a status that was read after began.
func (r *Repo) checkpoint(ctx context.Context, t tree, st team.WorktreeStatus, began time.Time, teamKey, agent, why string, note func(Touched) error) (ref string, fresh bool, err error) {
	if st.Head == "" && len(st.Changes) == 0 {
		return "", false, nil // empty repository
	}
	last := t.stamped()
	mark := t.print(st, began)
	if mark != "" && mark == last.Print {
		return last.Ref, false, nil
	}
	sha := st.Head
	if !st.Clean() {
		if sha, err = r.snapshot(ctx, t, false, why); err != nil {
			return "", false, err
		}
	}
	now := stamp{Print: mark, Commit: sha, Tree: sha}
	if !st.Clean() { // otherwise the commit is all there is
		if now.Tree, err = r.treesOf(ctx, sha); err != nil {
			return "", false, err
		}
	}
	if last.Ref != "" && now.Tree == last.Tree { // timestamps changed, contents did not
		now.Ref, now.Commit, now.Ahead = last.Ref, last.Commit, last.Ahead
		return last.Ref, false, t.putStamp(now)
	}
	var noted error
	if note != nil && st.Clean() {
		// The status that was just read: nothing has been run since. The ref can
		// wait, since the branch has everything.
		noted = t.noteTouched(ctx, st, note)
	}
	if now.Ref, err = r.keepAt(ctx, checkpointRoot, teamKey, agent, sha); err != nil {
		return "", false, err
	}
	r.step("checkpointed")
	list, known := r.plainSaves(KindCheckpoint, teamKey, agent)
	if !known {
		list, err = r.Saves(ctx, KindCheckpoint, teamKey, agent)
	}
	if len(list) > 0 && list[0].Ref != now.Ref {
		now.Ahead = list[0].At
	}
	if err := cmp.Or(t.putStamp(now), err); err != nil {
		return now.Ref, true, err
	}
	if note != nil && !st.Clean() {
		// Saving took its time, and somebody is at work here: look again.
		if st, noted = t.status(ctx); noted == nil {
			noted = t.noteTouched(ctx, st, note)
		}
	}
	return now.Ref, true, cmp.Or(r.prune(ctx, list, now.Ref, checkpointsKept), noted)
}

func (t tree) noteTouched(ctx context.Context, st team.WorktreeStatus, note func(Touched) error) error {
	w, err := t.touched(ctx, st)
	if err != nil {
		return err
	}
	return note(w)
}

// print returns a digest of everything that shows a change, or "" if timestamps
// cannot show one.
func (t tree) print(st team.WorktreeStatus, now time.Time) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", st.Head, st.Branch, st.Operation)
	for _, c := range st.Changes {
		fmt.Fprintf(h, "%q %s%s %s %s", c.Path, c.Index, c.Work, c.Mode, c.Objects)
		info, err := os.Lstat(filepath.Join(t.path, filepath.FromSlash(c.Path)))
		if err == nil {
			if now.Sub(info.ModTime()) < racyTime {
				return ""
			}
			fmt.Fprintf(h, " %d %d %v", info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// treesOf returns an identifier of a snapshot's contents (head, files, index)
// that does not depend on when the snapshot was taken.
func (r *Repo) treesOf(ctx context.Context, sha string) (string, error) {
	head, index, err := r.parts(ctx, sha)
	if err != nil {
		return "", err
	}
	if index == "" {
		return head, nil
	}
	out, err := r.read(ctx, "log", "--no-walk=unsorted", "--no-show-signature", "--format=%T %s", sha, index, index+"^@")
	if err != nil {
		return "", failed("read the snapshot "+sha, err)
	}
	trees := head
	for _, l := range lines(out, '\n') {
		if tree, subject, _ := strings.Cut(l, " "); strings.HasPrefix(subject, snapshotMark) {
			trees += " " + tree
		}
	}
	return trees, nil
}

func (t tree) stamped() stamp {
	var s stamp
	data, err := os.ReadFile(filepath.Join(t.dir, stampFile))
	if err != nil || json.Unmarshal(data, &s) != nil {
		return stamp{}
	}
	return s
}

func (t tree) putStamp(s stamp) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.dir, stampFile), data, 0o600); err != nil {
		return noSpace(err)
	}
	return nil
}
