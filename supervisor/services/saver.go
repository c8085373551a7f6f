package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Saver takes checkpoints of members' worktrees and warns members that change the same files, from
// any process.
type Saver struct {
	Layout team.Layout
	Ledger *ledger.Ledger
	Via    mail.Settler // for its messages; may be nil
}

// Save takes a checkpoint of a member's worktree. If it is a new one, Save warns about files that
// other members have changed as well. An unchanged worktree costs one git status.
func (v Saver) Save(ctx context.Context, r *worktree.Repo, m ledger.Member, why string) (ref string, fresh bool, err error) {
	return r.CheckpointNoting(ctx, m.Worktree, v.Layout.Key, m.Name, why, func(w worktree.Touched) error {
		return v.note(ctx, r, m, w)
	})
}

func (v Saver) post(ctx context.Context, in ledger.NewMessage) (ledger.Message, error) {
	msg, _, err := mail.Mailer{Layout: v.Layout, Ledger: v.Ledger.As(in.From), Via: v.Via}.Post(ctx, in)
	return msg, err
}

// noteChanges looks at a worktree, notes what the member has changed, and returns the files.
func (v Saver) noteChanges(ctx context.Context, r *worktree.Repo, m ledger.Member) ([]string, error) {
	w, err := r.Touched(ctx, m.Worktree)
	if err != nil {
		return nil, err
	}
	return slices.Concat(w.Committed, w.Dirty), v.note(ctx, r, m, w)
}

// note records which files a member has changed. As soon as another member has changed one of them
// too, it warns both and the lead. It is called when something in the worktree has changed, when a
// member goes idle and when a task is done. Changes merged from the other member are no overlap.
func (v Saver) note(ctx context.Context, r *worktree.Repo, m ledger.Member, w worktree.Touched) error {
	files := make([]ledger.Touch, 0, len(w.Committed)+len(w.Dirty))
	for _, p := range w.Dirty {
		files = append(files, ledger.Touch{Path: InRepo(m.Spec.Repo, p), Dirty: true})
	}
	for _, p := range w.Committed {
		files = append(files, ledger.Touch{Path: InRepo(m.Spec.Repo, p)})
	}
	led := v.Ledger.As(m.Name)
	shared, err := led.SetTouched(ctx, m.SessionKey, files)
	if err != nil || len(shared) == 0 {
		return err
	}
	var errs []error
	for len(shared) > 0 {
		n := slices.IndexFunc(shared, func(s ledger.SharedFile) bool { return s.Session != shared[0].Session })
		if n < 0 {
			n = len(shared)
		}
		errs = append(errs, v.warnOverlap(ctx, led, r, m, w.Head, shared[:n]))
		shared = shared[n:]
	}
	return errors.Join(errs...)
}

// warnOverlap examines the files that two members share, and warns both if each has changed them
// itself.
func (v Saver) warnOverlap(ctx context.Context, led *ledger.Ledger, r *worktree.Repo, m ledger.Member, head string, shared []ledger.SharedFile) error {
	other, err := led.MemberBySession(ctx, shared[0].Session)
	if err != nil || other.Worktree == "" {
		return err
	}
	theirs, err := r.BranchTip(ctx, other.Branch)
	if err != nil {
		return err
	}
	files := make([]worktree.Both, len(shared))
	for i, s := range shared {
		files[i] = worktree.Both{Path: OutOfRepo(m.Spec.Repo, s.Path), DirtyA: s.MyDirty, DirtyB: s.TheirDirty}
	}
	both, err := r.BothChanged(ctx, head, theirs, files)
	if err != nil || len(both) == 0 {
		return err
	}
	for i := range both {
		both[i] = InRepo(m.Spec.Repo, both[i])
	}
	fresh, err := led.TellOverlap(ctx, m.SessionKey, other.SessionKey, both)
	if err != nil || len(fresh) == 0 {
		return err
	}
	text := fmt.Sprintf("%s and %s have both changed %s.\nMerging their branches may conflict: agree who goes on with it, or merge early (teamctl worktree ls).",
		m.Name, other.Name, FileList(fresh))
	var errs []error
	for _, to := range []string{team.LeadName, other.Name, m.Name} {
		from := m.Name
		if to == m.Name {
			from = other.Name // a member does not mail itself
		}
		_, err := v.post(ctx, ledger.NewMessage{Kind: team.KindInfo, From: from, To: to, Text: text,
			Summary: m.Name + " and " + other.Name + " change the same files"})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// FileList names some files, and the number of further ones.
func FileList(files []string) string {
	const most = 10
	s := strings.Join(files[:min(len(files), most)], ", ")
	if n := len(files) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// InRepo returns a path or glob of a repository in the form used by leases and overlaps: a file in
// another repository is another file.
func InRepo(repo, path string) string {
	if repo == "" {
		return path
	}
	return repo + ":/" + path
}

// OutOfRepo reverses InRepo.
func OutOfRepo(repo, path string) string {
	if repo == "" {
		return path
	}
	return strings.TrimPrefix(path, repo+":/")
}
