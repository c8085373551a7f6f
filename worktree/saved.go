package worktree

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// checkpointRoot is the ref prefix of periodic snapshots.
const checkpointRoot = refsRoot + "checkpoint/"

// Kinds of saved state.
const (
	KindRescue     = "rescue"     // before something was removed or undone; kept until dropped
	KindCheckpoint = "checkpoint" // periodic; only the newest are kept
)

// Saves lists saved states, newest first: of one kind, or both for ""; of one
// team and one agent, or all for "".
func (r *Repo) Saves(ctx context.Context, kind, teamKey, agent string) ([]team.SavedWork, error) {
	var patterns []string
	for _, k := range []string{KindRescue, KindCheckpoint} {
		if kind != "" && kind != k {
			continue
		}
		p := refsRoot + k + "/"
		if teamKey != "" {
			if err := checkOwner(teamKey, orOne(agent)); err != nil {
				return nil, err
			}
			p += teamKey + "/"
			if agent != "" {
				p += agent + "/"
			}
		}
		patterns = append(patterns, p)
	}
	args := append([]string{"for-each-ref", "--format=%(refname)%00%(objectname)%00%(parent)%00%(contents:subject)%00%(committerdate:unix)"}, patterns...)
	out, err := r.read(ctx, args...)
	if err != nil {
		return nil, failed("list the saved states of "+r.root, err)
	}
	var list []team.SavedWork
	for _, l := range lines(out, '\n') {
		s, ok := parseSaved(l)
		if ok && (agent == "" || s.Agent == agent) {
			list = append(list, s)
		}
	}
	newestFirst(list)
	return list, nil
}

func newestFirst(list []team.SavedWork) {
	slices.SortStableFunc(list, func(a, b team.SavedWork) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(b.Ref, a.Ref)
	})
}

// plainSaves is Saves without what only the commits tell; known is false if the
// files do not show the refs.
func (r *Repo) plainSaves(kind, teamKey, agent string) (list []team.SavedWork, known bool) {
	refs, known := refsBelow(r.common, refsRoot+kind+"/"+teamKey+"/"+agent)
	for ref, sha := range refs {
		if s, ok := parseSaved(strings.Join([]string{ref, sha, "", "", ""}, "\x00")); ok {
			list = append(list, s)
		}
	}
	newestFirst(list)
	return list, known
}

func orOne(agent string) string {
	if agent == "" {
		return "x"
	}
	return agent
}

// parseSaved parses one line of for-each-ref; a ref of another shape is not
// teamctl's.
func parseSaved(line string) (team.SavedWork, bool) {
	f := strings.Split(line, "\x00")
	if len(f) != 5 {
		return team.SavedWork{}, false
	}
	part := strings.Split(strings.TrimPrefix(f[0], refsRoot), "/")
	if len(part) != 4 {
		return team.SavedWork{}, false
	}
	s := team.SavedWork{Ref: f[0], Kind: part[0], Team: part[1], Agent: part[2], Commit: f[1]}
	stamp, _, _ := strings.Cut(part[3], "Z")
	at, err := time.Parse(refTime, stamp+"Z")
	if err != nil {
		return team.SavedWork{}, false
	}
	s.At = at
	parents := strings.Fields(f[2])
	if strings.HasPrefix(f[3], snapshotMark) && len(parents) > 0 {
		s.Head, s.What = parents[0], strings.TrimPrefix(f[3], snapshotMark+" of ")
	} else {
		s.Head, s.Clean, s.What = f[1], true, "the commit "+strconv.Quote(f[3])
	}
	return s, true
}

// Saved finds a saved state by its ref; the prefix refs/teamctl/ may be
// omitted.
func (r *Repo) Saved(ctx context.Context, ref string) (team.SavedWork, error) {
	if !strings.HasPrefix(ref, refsRoot) {
		ref = refsRoot + strings.TrimPrefix(ref, "teamctl/")
	}
	list, err := r.Saves(ctx, "", "", "")
	if err != nil {
		return team.SavedWork{}, err
	}
	for _, s := range list {
		if s.Ref == ref {
			return s, nil
		}
	}
	return team.SavedWork{}, notFound(team.ReasonUnknownRev, "no saved state %s in %s", ref, r.root).
		WithHint(gitHint(r.root, "for-each-ref", refsRoot))
}

// SavedChanges returns the files of a saved state that differ from the
// checked-out commit, as "git diff --stat" lists them; patch adds the text.
func (r *Repo) SavedChanges(ctx context.Context, s team.SavedWork, patch bool) (string, error) {
	args := append(slices.Clone(plainDiff), "--no-renames", "--stat=120")
	if patch {
		args = append(args, "--patch", "--binary")
	}
	out, err := r.read(ctx, append(args, s.Head, s.Commit)...)
	if err != nil {
		return "", failed("show "+s.Ref, err)
	}
	return string(out), nil
}

// LastCheckpoint returns the one of a member's checkpoints, newest first, that was made last in the
// worktree at path. If the clock was set back that is not the one with the latest date.
func (r *Repo) LastCheckpoint(path string, list []team.SavedWork) team.SavedWork {
	t, err := r.tree(path)
	if err != nil {
		return list[0]
	}
	last := t.stamped()
	i := slices.IndexFunc(list, func(s team.SavedWork) bool { return s.Ref == last.Ref })
	if i < 0 || list[0].At.After(last.Ahead) { // also one whose process was killed before it wrote the stamp
		i = 0
	}
	return list[i]
}

// DropSaved deletes a saved state if its ref has not moved since it was read.
func (r *Repo) DropSaved(ctx context.Context, s team.SavedWork) error {
	if !strings.HasPrefix(s.Ref, refsRoot) || s.Commit == "" {
		return invalid(team.ReasonBadInput, "%q is not a saved state", s.Ref)
	}
	_, err := git(ctx, call{dir: r.root, args: []string{"update-ref", "-d", s.Ref, s.Commit}})
	return failed("drop "+s.Ref, err)
}

// refTime is the format of the last part of a ref.
const refTime = "20060102T150405.000Z"

// keepAt creates a ref to a commit under root/<team>/<agent>/<time> and returns
// the ref.
func (r *Repo) keepAt(ctx context.Context, root, teamKey, agent, sha string) (string, error) {
	stem := root + teamKey + "/" + agent + "/" + time.Now().UTC().Format(refTime)
	if err := checkBranch(stem); err != nil {
		return "", err
	}
	const tries = 10 // within one millisecond
	var err error
	for i := range tries {
		ref := stem
		if i > 0 {
			ref = fmt.Sprintf("%s-%d", stem, i+1)
		}
		// "" as the old value means that it must not exist.
		_, err = git(ctx, call{dir: r.root, args: []string{"update-ref", ref, sha, ""}, conf: []string{"core.fsync=all"}})
		if err == nil {
			return ref, nil
		}
		if exitStatus(err) < 0 {
			break
		}
	}
	return "", failed("keep a snapshot at "+stem, err)
}

// prune drops all but the newest keep states of a list (newest first). That at made is the newest,
// whatever its date; those dated after now are the oldest, since the clock has been set back since
// they were made.
func (r *Repo) prune(ctx context.Context, list []team.SavedWork, made string, keep int) error {
	if len(list) <= keep {
		return nil
	}
	now := time.Now()
	rank := func(s team.SavedWork) int {
		switch {
		case s.Ref == made:
			return 0
		case !s.At.After(now):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b team.SavedWork) int { return rank(a) - rank(b) })
	var in bytes.Buffer
	for _, s := range list[keep:] {
		fmt.Fprintf(&in, "delete %s %s\n", s.Ref, s.Commit)
	}
	_, err := git(ctx, call{dir: r.root, args: []string{"update-ref", "--stdin"}, stdin: in.Bytes()})
	return failed("drop old checkpoints", err)
}

// RestoreInto resets a member's own worktree to a saved state: branch, index
// and files. It first saves the current state to a rescue ref, which it returns
// ("" if there are only commits that the branch keeps). No process may be
// working there; RestoreInto waits a few seconds for a running git, such as a
// checkpoint's.
//
// Errors: main_worktree (denied), unknown_revision (not found), worktree_busy
// (conflict), and git errors.
func (r *Repo) RestoreInto(ctx context.Context, path, ref, teamKey, agent string) (rescue string, err error) {
	if err := checkOwner(teamKey, agent); err != nil {
		return "", err
	}
	sha, err := r.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	head, index, err := r.parts(ctx, sha)
	if err != nil {
		return "", err
	}
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("restore")
	}
	if err == nil {
		_, err = t.settled(ctx, settleTime) // before the lock, so that others do not wait as well
	}
	if err != nil {
		return "", err
	}
	l, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Unlock() }()
	f, err := r.inspect(ctx, t, settleTime)
	if err != nil {
		return "", err
	}
	if len(f.busy) > 0 {
		return "", conflict(team.ReasonWorktreeBusy, "%s is in use: %s", t.at, pids(f.busy)).WithHint("stop the member first")
	}
	if err := lockFile(t.locks()); err != nil {
		return "", err
	}
	st := f.status
	if !st.Clean() || st.Head != head {
		now, err := r.snapshot(ctx, t, true, "before a restore")
		if err != nil {
			return "", err
		}
		if rescue, err = r.keepAt(ctx, rescueRoot, teamKey, agent, now); err != nil {
			return "", err
		}
	}
	r.step("restore-rescued")
	done, err := t.begin(doing{Kind: doingRestore, Head: head})
	if err != nil {
		return rescue, err
	}
	if err := t.resetTo(ctx, st, head, sha, index); err != nil {
		return rescue, team.Errorf(team.CodeOf(err), "restore %s: %s is incomplete: %w", ref, t.path, err).
			WithReason(team.ReasonOf(err)).WithHint("try again; the snapshot is intact")
	}
	done()
	return rescue, nil
}

// resetTo resets the worktree to a snapshot.
func (t tree) resetTo(ctx context.Context, st team.WorktreeStatus, head, work, index string) error {
	switch st.Operation {
	case "rebase":
		if err := t.leaveRebase(ctx); err != nil {
			return err
		}
	case "bisect":
		if _, err := git(ctx, t.call("bisect", "reset")); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"reset", "--quiet", "--hard", head},
		{"clean", "--quiet", "-d", "--force"}, // keeps ignored files and nested repositories
	} {
		if _, err := git(ctx, t.call(args...)); err != nil {
			return t.lockedOr("reset "+t.path, err)
		}
	}
	if index == "" {
		return nil
	}
	return t.fill(ctx, head, work, index)
}
