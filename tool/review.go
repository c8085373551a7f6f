package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// ReviewComment is a comment on a member's changes or plan, with the current place of its lines.
type ReviewComment struct {
	ledger.Comment
	Name   string `json:"name"`           // "3.2"; "2" on a plan
	Member string `json:"member"`         // whose changes it is about
	Plan   int64  `json:"plan,omitempty"` // number of the request, if it is about a plan
	// Line is the current number of its first line; 0 for a whole file, and if it is unknown.
	Line    int  `json:"line,omitempty"`
	Changed bool `json:"changed,omitempty"` // its lines are no longer there
}

// Review is the comments on the changes of one member, or on its plan.
type Review struct {
	Member   string          `json:"member"`
	Plan     int64           `json:"plan,omitempty"` // number of the request, if they are about a plan
	Comments []ReviewComment `json:"comments"`
	Rounds   []ledger.Round  `json:"rounds,omitempty"`
	// Reviewed are the files that the caller has marked as reviewed and that have not changed.
	Reviewed []string `json:"reviewed,omitempty"`
}

// ReviewAddIn writes, changes or, with an empty text, deletes a comment.
type ReviewAddIn struct {
	Member string `json:"member"`
	File   string `json:"file"`
	Lines  string `json:"lines"` // "41", "40-44"; "" for the whole file
	Old    bool   `json:"old"`   // the lines are those of the base, which the member has removed
	Text   string `json:"text"`
	// Comment is the name of the draft to change; File may then be "".
	Comment string `json:"comment"`
	// Plan, if set, is the request of the plan that it is about, by its number or request id, instead
	// of Member and File.
	Plan string `json:"plan"`
	// Reviewed, if set, marks the file as reviewed or removes the mark, without a comment.
	Reviewed *bool `json:"reviewed"`
}

// ReviewAdd writes a draft of a comment. Only ReviewSend sends it; one on a plan goes with the
// plan's rejection, see AnswerIn.
func (t *Team) ReviewAdd(ctx context.Context, c Caller, in ReviewAddIn) (ReviewComment, error) {
	if in.Plan != "" {
		return t.planAdd(ctx, c, in)
	}
	m, err := t.reviewed(ctx, c, in.Member)
	if err != nil {
		return ReviewComment{}, err
	}
	if in.Reviewed != nil {
		return ReviewComment{Member: m.Name}, t.markReviewed(ctx, c, m, in.File, *in.Reviewed)
	}
	d := ledger.Comment{Session: m.SessionKey, Author: c.Name, Text: strings.TrimRight(in.Text, " \n")}
	if in.Comment != "" {
		if d.Round, d.Number, err = ledger.ParseCommentName(in.Comment); err != nil {
			return ReviewComment{}, err
		}
	} else if strings.TrimSpace(d.Text) == "" {
		return ReviewComment{}, team.Errorf(team.CodeInvalid, "a comment needs a text")
	}
	if in.File != "" || in.Comment == "" {
		first, last, err := parseLines(in.Lines)
		if err != nil {
			return ReviewComment{}, err
		}
		if d.Anchor, err = t.anchor(ctx, m, in.File, first, last, in.Old); err != nil {
			return ReviewComment{}, err
		}
	}
	d, err = t.as(c).PutDraft(ctx, d)
	return ReviewComment{Comment: d, Name: d.Name(), Member: m.Name, Line: d.First}, err
}

// reviewed returns the member whose changes the caller may comment on.
func (t *Team) reviewed(ctx context.Context, c Caller, name string) (ledger.Member, error) {
	if err := t.may(ctx, c, OpReview); err != nil {
		return ledger.Member{}, err
	}
	m, err := t.Member(ctx, name)
	switch {
	case err != nil:
		return m, err
	case m.Worktree == "":
		return m, team.Errorf(team.CodeInvalid, "%s has no worktree of its own", m.Name)
	case m.Name == c.Name && !c.Person:
		return m, team.Errorf(team.CodeDenied, "%s cannot review its own changes", c.Name).WithReason(team.ReasonOwnRequest)
	}
	return m, nil
}

// parseLines parses "41" and "40-44"; "" is 0, 0.
func parseLines(s string) (first, last int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, ranged := strings.Cut(s, "-")
	first, err = strconv.Atoi(a)
	last = first
	if err == nil && ranged {
		last, err = strconv.Atoi(b)
	}
	if err != nil || first < 1 || last < first {
		return 0, 0, team.Errorf(team.CodeInvalid, "invalid lines %q: a number or a range, 41 or 40-44", s)
	}
	return first, last, nil
}

// fileRead is how much of a file is searched for a comment's lines.
const fileRead = 16 << 20

// treeFile reads a file of a member's worktree, never one outside of it. there is false if there is none;
// of a symbolic link it reads the target's name, as git does, and nothing of what is no file of text or
// data.
func treeFile(dir, name string) (data []byte, there bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }() // read only
	name = filepath.FromSlash(name)
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := root.Readlink(name)
		return []byte(to), err == nil, err
	case info.IsDir():
		return nil, false, nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, true, unreadable(info, err)
	}
	defer func() { _ = f.Close() }() // read only
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, true, err
	}
	data, err = io.ReadAll(io.LimitReader(f, fileRead))
	return data, true, err
}

// unreadable returns why a file could not be opened, nil for one that has no content, such as a socket.
func unreadable(info fs.FileInfo, err error) error {
	if info.Mode().IsRegular() {
		return err
	}
	return nil
}

// reader reads files of a member's worktree, or of the base of its branch, each once.
type reader struct {
	ctx  context.Context
	repo *worktree.Repo
	m    ledger.Member
	base string
	have map[string][]string
}

func (t *Team) reader(ctx context.Context, m ledger.Member) (*reader, error) {
	groups, err := t.treesByRepo(ctx, []string{m.Name}, true)
	if err != nil {
		return nil, err
	}
	if len(groups) != 1 || len(groups[0].Members) != 1 {
		return nil, team.Errorf(team.CodeInvalid, "%s has no worktree of its own", m.Name)
	}
	return &reader{ctx: ctx, repo: groups[0].Repo, m: m, base: m.Base, have: map[string][]string{}}, nil
}

// lines returns the lines of a file, nil if there is none.
func (r *reader) lines(path string, old bool) ([]string, error) {
	key := fmt.Sprint(old, path)
	if list, ok := r.have[key]; ok {
		return list, nil
	}
	var data []byte
	var there bool
	var err error
	if old {
		data, there, err = r.repo.File(r.ctx, r.m.Worktree, cmp.Or(r.base, "HEAD"), path)
	} else {
		data, there, err = treeFile(r.m.Worktree, path)
	}
	if err != nil {
		return nil, err
	}
	list := split(string(data))
	if list == nil && there {
		list = []string{}
	}
	r.have[key] = list
	return list, nil
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// anchor returns the place of a comment in the current file.
func (t *Team) anchor(ctx context.Context, m ledger.Member, path string, first, last int, old bool) (ledger.Anchor, error) {
	if path == "" {
		return ledger.Anchor{}, team.Errorf(team.CodeInvalid, "a comment needs a file")
	}
	path = filepath.ToSlash(filepath.Clean(path))
	a := ledger.Anchor{Path: path, Old: old}
	r, err := t.reader(ctx, m)
	if err != nil {
		return a, err
	}
	lines, err := r.lines(path, old)
	if err != nil {
		return a, err
	}
	if first == 0 {
		if lines == nil { // a removed file may have a comment, too
			if was, err := r.lines(path, !old); err != nil || was == nil {
				return a, cmp.Or(err, error(team.Errorf(team.CodeNotFound, "%s has no file %s", m.Name, path).WithHint("teamctl worktree diff --stat "+m.Name)))
			}
		}
		return a, nil
	}
	if last > len(lines) {
		return a, team.Errorf(team.CodeNotFound, "%s of %s has %d lines", path, m.Name, len(lines)).WithHint("teamctl worktree diff " + m.Name)
	}
	return quoted(a, lines, first, last), nil
}

// ReviewShow returns the comments on the changes of a member, or of all members if agent is "".
// Drafts are shown to their author only.
func (t *Team) ReviewShow(ctx context.Context, c Caller, member string) ([]Review, error) {
	var list []ledger.Member
	if member != "" {
		m, err := t.Member(ctx, member)
		if err != nil {
			return nil, err
		}
		list = []ledger.Member{m}
	} else {
		all, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return nil, err
		}
		list = all
	}
	out := []Review{}
	for _, m := range list {
		r, err := t.review(ctx, c, m)
		if err != nil {
			return nil, err
		}
		if member != "" || len(r.Comments) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

func (t *Team) review(ctx context.Context, c Caller, m ledger.Member) (Review, error) {
	out := Review{Member: m.Name, Comments: []ReviewComment{}}
	comments, err := t.Ledger.Comments(ctx, m.SessionKey)
	if err != nil {
		return out, err
	}
	if out.Rounds, err = t.Ledger.Rounds(ctx, m.SessionKey); err != nil {
		return out, err
	}
	marks, err := t.Ledger.Reviewed(ctx, m.SessionKey, c.Name)
	if err != nil {
		return out, err
	}
	comments = slices.DeleteFunc(comments, func(x ledger.Comment) bool { return x.State == ledger.CommentDraft && x.Author != c.Name })
	if len(comments) == 0 && len(marks) == 0 {
		return out, nil
	}
	var r *reader
	if m.Worktree != "" {
		if r, err = t.reader(ctx, m); err != nil {
			return out, err
		}
	}
	for _, x := range comments {
		y := ReviewComment{Comment: x, Name: x.Name(), Member: m.Name}
		switch {
		case x.First == 0:
		case r == nil:
			y.Changed = true
		default:
			lines, err := r.lines(x.Path, x.Old)
			if err != nil {
				return out, err
			}
			line, ok := locate(lines, x.Anchor)
			y.Line, y.Changed = line, !ok
		}
		out.Comments = append(out.Comments, y)
	}
	for path, hash := range marks {
		if r == nil {
			break
		}
		now, err := hashOf(m.Worktree, path)
		if err != nil {
			return out, err
		}
		if now == hash {
			out.Reviewed = append(out.Reviewed, path)
		}
	}
	slices.Sort(out.Reviewed)
	return out, nil
}

// hashOf identifies the content of a file of a worktree. A missing file has a hash, too.
func hashOf(dir, path string) (string, error) {
	data, there, err := treeFile(dir, path)
	if err != nil || !there {
		return "none", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func (t *Team) markReviewed(ctx context.Context, c Caller, m ledger.Member, path string, on bool) error {
	if path == "" {
		return team.Errorf(team.CodeInvalid, "which file was reviewed has to be said")
	}
	f := ledger.ReviewedFile{Session: m.SessionKey, Author: c.Name, Path: filepath.ToSlash(filepath.Clean(path))}
	if on {
		if _, err := t.anchor(ctx, m, path, 0, 0, false); err != nil {
			return err
		}
		var err error
		if f.Hash, err = hashOf(m.Worktree, f.Path); err != nil {
			return err
		}
	}
	return t.as(c).MarkReviewed(ctx, f)
}

// lastReview returns the round of comments that the caller sent last, with the commit that it saw; the
// zero value if it has sent none.
func (t *Team) lastReview(ctx context.Context, c Caller, m ledger.Member) (ledger.Round, error) {
	rounds, err := t.Ledger.Rounds(ctx, m.SessionKey)
	if err != nil {
		return ledger.Round{}, err
	}
	for _, r := range slices.Backward(rounds) {
		if r.Author == c.Name && r.Tip != "" {
			return r, nil
		}
	}
	return ledger.Round{}, nil
}

// SentReview is a round of comments that was sent.
type SentReview struct {
	Round    int    `json:"round"`
	Comments int    `json:"comments"`
	Message  string `json:"message_id"`
	Task     string `json:"task,omitempty"`
	File     string `json:"file,omitempty"` // has the comments if they were too long for a message
}

// ReviewSend sends the caller's drafts to the member, as one message or as a task for it.
func (t *Team) ReviewSend(ctx context.Context, c Caller, member string, asTask bool) (SentReview, error) {
	m, err := t.reviewed(ctx, c, member)
	if err != nil {
		return SentReview{}, err
	}
	if asTask {
		if err := t.may(ctx, c, OpTaskManage); err != nil {
			return SentReview{}, err
		}
		if roles()[OpTaskWork][m.Role] == no {
			return SentReview{}, team.Errorf(team.CodeDenied, "%s (%s) may not %s", m.Name, m.Role, OpTaskWork).WithReason(team.ReasonRole).
				WithHint("send the comments as a message: teamctl review send " + m.Name)
		}
	} else if err := t.may(ctx, c, OpSend); err != nil {
		return SentReview{}, err
	}
	all, err := t.review(ctx, c, m)
	if err != nil {
		return SentReview{}, err
	}
	drafts := slices.DeleteFunc(all.Comments, func(x ReviewComment) bool { return x.State != ledger.CommentDraft })
	if len(drafts) == 0 {
		return SentReview{}, team.Errorf(team.CodeNotFound, "there are no comments on the changes of %s that were not sent", m.Name).
			WithReason(team.ReasonNoDrafts).WithHint(fmt.Sprintf("teamctl review add %s FILE:LINE TEXT", m.Name))
	}
	in := ledger.RoundIn{Session: m.SessionKey, Author: c.Name, Drafts: map[int]string{}}
	for _, d := range drafts {
		in.Drafts[d.Number] = d.Text
	}
	r, err := t.reader(ctx, m)
	if err != nil {
		return SentReview{}, err
	}
	ref, _, err := r.repo.Checkpoint(ctx, m.Worktree, t.Layout.Key, m.Name, "reviewed")
	if err != nil {
		return SentReview{}, err
	}
	if ref != "" {
		if in.Tip, err = r.repo.Resolve(ctx, ref); err != nil {
			return SentReview{}, err
		}
	}
	out := SentReview{Round: drafts[0].Round, Comments: len(drafts)}
	text := reviewText(drafts)
	subject := fmt.Sprintf("review %d of your changes: %s", out.Round, comments(len(drafts)))
	if len(text) > reviewMost {
		if out.File, err = t.reviewFile(m, out.Round, text); err != nil {
			return SentReview{}, err
		}
		text = fmt.Sprintf("The comments are in the file %s: read it.\n\n%s", out.File, reviewHow(drafts))
	}
	in.Message = &ledger.NewMessage{Kind: team.KindMessage, From: c.Name, To: m.Name, ToSession: m.SessionKey, Text: subject + "\n\n" + text, Summary: subject}
	if asTask {
		in.Mark = team.NewUUID()
		in.Task = &ledger.NewTask{Subject: fmt.Sprintf("handle %s of review %d", comments(len(drafts)), out.Round), Description: text}
		body, err := inbox.Encode(inbox.TaskAssignment{
			TaskID: in.Mark, Subject: in.Task.Subject, Description: text, AssignedBy: c.Name, Timestamp: inbox.Timestamp(time.Now()),
		})
		if err != nil {
			return SentReview{}, err
		}
		in.Message.Kind, in.Message.Text, in.Message.Summary = team.KindTaskAssignment, body, inbox.Summary("", "task "+in.Mark+": "+in.Task.Subject)
	}
	sent, err := t.as(c).SendRound(ctx, in)
	if err != nil { // the file stays: the round may have been sent, or be sent by another process
		return SentReview{}, err
	}
	t.mailer(c).Deliver(ctx, sent.Deliveries)
	t.carry(ctx, sent.Deliveries)
	out.Message, out.Task = sent.Round.Message, sent.Round.Task
	return out, nil
}

// reviewMost is the maximum length of comments in a message. The assignment of a task has them in
// JSON, where they may be twice as long.
const reviewMost = team.MaxMessageBytes / 3

func comments(n int) string {
	if n == 1 {
		return "1 comment"
	}
	return fmt.Sprintf("%d comments", n)
}

// reviewText is the text for the member.
func reviewText(list []ReviewComment) string {
	var b strings.Builder
	for _, c := range list {
		a := c.Anchor
		if c.Line > 0 {
			a.First, a.Last = c.Line, c.Line+a.Last-a.First
		}
		fmt.Fprintf(&b, "%s %s", c.Name, a.Where())
		switch {
		case a.Old:
			b.WriteString(" (as it was before your changes)")
		case c.Changed:
			b.WriteString(" (changed since)")
		}
		b.WriteByte('\n')
		if a.First > 0 {
			for _, l := range strings.Split(a.Quote, "\n") {
				b.WriteString("> " + l + "\n")
			}
		}
		b.WriteString(c.Text + "\n\n")
	}
	return b.String() + reviewHow(list)
}

func reviewHow(list []ReviewComment) string {
	return fmt.Sprintf("Answer each comment with ReviewAnswer or a command:\n  teamctl review answer %s --handled\n  teamctl review answer %s --ask \"your question\"", list[0].Name, list[0].Name)
}

func (t *Team) reviewFile(m ledger.Member, round int, text string) (string, error) {
	path := t.reviewPath(fmt.Sprintf("%s-%d", m.Name, round), text)
	return path, writeReview(path, text)
}

// reviewPath returns the path of comments that are too long for a message. Others of the same round,
// which another process may be sending, have another one.
func (t *Team) reviewPath(stem, text string) string {
	return filepath.Join(t.Layout.Reviews(), fmt.Sprintf("%s-%.4x.md", stem, sha256.Sum256([]byte(text))))
}

// writeReview writes comments that are too long for a message.
func writeReview(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(text+"\n"), 0o600, true)
}

// ReviewAnswerIn answers a comment: it is handled, or the text asks a question.
type ReviewAnswerIn struct {
	Member  string `json:"member"`  // whose changes the comment is about; "": the caller
	Comment string `json:"comment"` // "3.2"
	Handled bool   `json:"handled"`
	Text    string `json:"text"`
}

// ReviewAnswer records the answer to a comment. A question is sent to the comment's author.
func (t *Team) ReviewAnswer(ctx context.Context, c Caller, in ReviewAnswerIn) (ReviewComment, error) {
	name := cmp.Or(in.Member, c.Name)
	if c.Person && in.Member == "" {
		return ReviewComment{}, team.Errorf(team.CodeInvalid, "whose comment is answered has to be said").WithHint("teamctl review answer 3.2 --handled --member NAME")
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return ReviewComment{}, err
	}
	if m.SessionKey != c.Session || c.Person { // not its own
		if err := t.may(ctx, c, OpReview); err != nil {
			return ReviewComment{}, err
		}
	} else if t.Elsewhere != nil {
		return ReviewComment{}, t.Elsewhere
	}
	round, number, err := ledger.ParseCommentName(in.Comment)
	if err != nil {
		return ReviewComment{}, err
	}
	a := ledger.CommentAnswer{Session: m.SessionKey, Round: round, Number: number, Handled: in.Handled, Text: strings.TrimSpace(in.Text)}
	if !a.Handled {
		if a.Text == "" {
			return ReviewComment{}, team.Errorf(team.CodeInvalid, "an answer is that it is handled, or a question").WithHint("teamctl review answer " + in.Comment + " --handled, or --ask TEXT")
		}
		all, err := t.Ledger.Comments(ctx, m.SessionKey)
		if err != nil {
			return ReviewComment{}, err
		}
		for _, x := range all {
			if x.Round == round && x.Number == number && x.Author != c.Name {
				a.Message = &ledger.NewMessage{Kind: team.KindMessage, From: c.Name, To: x.Author, Text: fmt.Sprintf("about comment %s, %s: %s", x.Name(), x.Where(), a.Text),
					Summary: "question about comment " + x.Name()}
			}
		}
	}
	out, err := t.as(c).AnswerComment(ctx, a)
	if err != nil {
		return ReviewComment{}, err
	}
	t.mailer(c).Deliver(ctx, out.Deliveries)
	t.carry(ctx, out.Deliveries)
	return ReviewComment{Comment: out.Comment, Name: out.Comment.Name(), Member: m.Name, Line: out.Comment.First}, nil
}
