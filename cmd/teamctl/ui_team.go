package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
	"github.com/teamctl/teamctl/tool/op"
)

// screenTeam is a team as a screen reads and changes it: reads come from package look,
// and every change is an operation of package op, by the same door as other programs. Drafts
// change nothing that others see.
type screenTeam struct {
	app      *app
	team     *tool.Team
	env      *tool.Env
	key      string
	door     string // tool.DoorScreen, or the page's
	unattend func()
	points   look.Points
	followed atomic.Int64 // how often it is followed now
}

var _ view.Team = (*screenTeam)(nil)

func (s *screenTeam) close() {
	if s.unattend != nil {
		s.unattend()
	}
	_ = s.team.Close() // what was written through it is committed
}

func (s *screenTeam) Follow(ctx context.Context, interest func() view.Interest, each func(view.Snapshot)) error {
	s.followed.Add(1)
	defer s.followed.Add(-1)
	return look.Follow(ctx, s.team, interest, each)
}

func (s *screenTeam) Request(ctx context.Context, id int64) (view.Request, error) {
	return look.Request(ctx, s.team, id)
}

func (s *screenTeam) Member(ctx context.Context, name string) (view.MemberDetail, error) {
	return look.Member(ctx, s.team, name)
}

func (s *screenTeam) Task(ctx context.Context, id string) (view.TaskDetail, error) {
	return look.TaskDetail(ctx, s.team, id)
}

func (s *screenTeam) TaskPage(ctx context.Context, q view.TaskQuery) (view.TaskPage, error) {
	return look.TaskPage(ctx, s.team, q)
}

func (s *screenTeam) TaskNews(ctx context.Context, ids []string, since int64) (view.TaskNews, error) {
	return look.TaskNews(ctx, s.team, ids, since)
}

func (s *screenTeam) Dependencies(ctx context.Context) (map[string][]string, error) {
	return look.Dependencies(ctx, s.team)
}

func (s *screenTeam) Near(ctx context.Context, id string) (view.Near, error) {
	return look.Near(ctx, s.team, id)
}

func (s *screenTeam) Receipts(ctx context.Context, message string) ([]view.Receipt, error) {
	return look.Receipts(ctx, s.team, message)
}

func (s *screenTeam) Mail(ctx context.Context) ([]view.Message, error) {
	return look.Mail(ctx, s.team)
}

func (s *screenTeam) Usage(ctx context.Context) (view.Usage, error) {
	return look.Usage(ctx, s.team, &s.points)
}

func (s *screenTeam) Changes(ctx context.Context, member, since string) (view.Changes, error) {
	return look.Changes(ctx, s.team, member, since)
}

func (s *screenTeam) Merges(ctx context.Context) ([]view.Merge, error) {
	return look.Merges(ctx, s.team)
}

func (s *screenTeam) TaskLog(ctx context.Context, id string, attempt int) (view.TaskLog, error) {
	return look.TaskLog(ctx, s.team, id, attempt)
}

func (s *screenTeam) GateLog(ctx context.Context, merge int64, each func(view.Merge, view.LogPart)) error {
	return look.GateLog(ctx, s.team, merge, each)
}

func (s *screenTeam) Log(ctx context.Context, kind string, all bool) ([]view.Event, error) {
	return look.Log(ctx, s.team, kind, all)
}

func (s *screenTeam) Timeline(ctx context.Context) (view.Timeline, error) {
	w, err := look.RunWindow(ctx, s.team, 0, time.Now())
	if err != nil {
		return view.Timeline{}, err
	}
	return look.Timeline(ctx, s.team, w)
}

func (s *screenTeam) Screen(ctx context.Context, name string, each func(view.Frame)) error {
	return look.ScreenFollow(ctx, s.team, name, each)
}

func (s *screenTeam) History(ctx context.Context, name string) ([]string, error) {
	return look.ScreenBack(ctx, s.team, name)
}

func (s *screenTeam) Drafts(ctx context.Context) (map[string]string, error) {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return nil, err
	}
	return s.team.Drafts(ctx, c)
}

func (s *screenTeam) Keep(ctx context.Context, d view.Deed) error {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return err
	}
	x := tool.Draft{Purpose: d.Purpose(), Text: d.Text}
	if a, _ := view.ActionByID(d.Action); a.Operation == "ApprovalAnswer" {
		x.Approval = d.Approval
	}
	return s.team.KeepDraft(ctx, c, x)
}

func (s *screenTeam) Writable(ctx context.Context) error {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return err
	}
	return s.team.CheckWrites(ctx, c)
}

func (s *screenTeam) PutOff(ctx context.Context, n view.Need, d time.Duration) error {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return err
	}
	return look.PutOff(ctx, s.team, c, n, d)
}

func (s *screenTeam) TakeUp(ctx context.Context, n view.Need) error {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return err
	}
	return look.TakeUp(ctx, s.team, c, n)
}

// Do carries out what a person has asked for, and drops the draft of its text.
func (s *screenTeam) Do(ctx context.Context, d view.Deed) (view.Done, error) {
	done, err := s.do(ctx, d)
	if a, _ := view.ActionByID(d.Action); err == nil && !d.Preview && a.Asks != "" && a.Operation != "ReviewAdd" {
		d.Text = ""
		_ = s.Keep(ctx, d) // what it was for is done, and a draft that stays is seen
	}
	return done, err
}

func (s *screenTeam) do(ctx context.Context, d view.Deed) (view.Done, error) {
	a, ok := view.ActionByID(d.Action)
	if !ok {
		return view.Done{}, team.Errorf(team.CodeInvalid, "unknown action %q", d.Action)
	}
	if a.Terminal {
		left, err := s.attach(ctx, d.Member)
		return view.Done{Left: left}, err
	}
	if d.Approval != 0 && a.Operation == "ApprovalAnswer" {
		r, err := look.Request(ctx, s.team, d.Approval)
		switch {
		case err != nil:
			return view.Done{}, err
		case r.State != "pending":
			return view.Done{}, team.Errorf(team.CodeConflict, "%s %d of %s is already %s by %s", r.Kind, r.ID, r.Member, r.State, r.AnsweredBy)
		case r.Seen() != d.Seen:
			return view.Done{}, team.Errorf(team.CodeConflict, "%s %d of %s has changed since it was shown: no answer was given", r.Kind, r.ID, r.Member)
		}
	}
	if a.ID == "merge-ready" {
		return s.mergeReady(ctx, a, d)
	}
	if a.ID == "message-group" {
		return s.messageGroup(ctx, d)
	}
	in, err := deedInput(a, d)
	if err != nil {
		return view.Done{}, err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return view.Done{}, err
	}
	out, err := op.NewSession(s.env, s.key, s.caller, s.app.outsider).CallJSON(ctx, a.Operation, raw)
	if err != nil {
		return view.Done{}, err
	}
	var said struct {
		Message   string `json:"message"`
		Outcome   string `json:"outcome"`
		Rule      *team.PermissionRule
		Unsent    int    `json:"unsent"`
		MessageID string `json:"message_id"`
		Name      string `json:"name"`
		Comment   struct {
			Name string `json:"name"`
		} `json:"comment"`
		Task struct {
			ID      string `json:"id"`
			Subject string `json:"subject"`
		} `json:"task"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return view.Done{}, err
	}
	done := view.Done{Said: said.Message, Message: said.MessageID}
	switch {
	case taskSaid(a.ID, d) != "":
		if done.Said = taskSaid(a.ID, d); strings.HasPrefix(said.Outcome, tool.Already) {
			done.Said = "nothing was changed: " + strings.Replace(said.Message, "Task #", "task ", 1)
		}
	case a.Operation == "ApprovalAnswer":
		state := "approved"
		if a.ID == "reject" {
			state = "rejected"
		}
		if strings.HasPrefix(said.Outcome, tool.Already) {
			state = "already " + state
		}
		done.Said = fmt.Sprintf("request %d of %s is %s", d.Approval, d.Member, state)
		if said.Unsent > 0 {
			done.Said += fmt.Sprintf(", without your comments on it: %d", said.Unsent)
		}
		if said.Rule != nil {
			done.Said += ", and allowed from now on: " + said.Rule.String()
		}
	case a.ID == "add-task":
		done.Said = fmt.Sprintf("task %s is added: %s", said.Task.ID, said.Task.Subject)
	case a.Operation == "ReviewSend":
		var sent tool.SentReview
		if err := json.Unmarshal(out, &sent); err != nil {
			return view.Done{}, err
		}
		done.Said, done.Message = sentReview(d.Member, sent), sent.Message
	case a.Operation == "ReviewAdd" && (a.ID == "reviewed" || a.ID == "not-reviewed"):
		done.Said = d.Path + " is " + a.Title
	case a.Operation == "ReviewAdd":
		done.Comment = said.Comment.Name
		done.Said = "comment " + done.Comment + " is a draft"
		if strings.TrimSpace(d.Text) == "" {
			done.Said = "comment " + done.Comment + " is deleted"
		}
	case a.Operation == "ReviewAnswer":
		done.Said = "comment " + d.Comment + " is handled"
	case done.Said == "":
		done.Said = a.Title + " " + d.Member + ": done"
	}
	return done, nil
}

// taskSaid tells what an action has done to a task, "" for other actions.
func taskSaid(id string, d view.Deed) string {
	task, text := "task "+d.Task, strings.TrimSpace(d.Text)
	switch id {
	case "assign":
		return task + " is given to " + text
	case "release":
		return task + " is taken from its owner"
	case "retry":
		return task + " is tried again"
	case "rename-task":
		return task + " is changed: " + text
	case "describe-task":
		return "the description of " + task + " is changed"
	case "command-task":
		return "the command of " + task + " is changed"
	case "depend":
		return task + " depends on " + strings.Join(strings.FieldsFunc(text, taskSeparator), ", ") + ", too"
	case "prioritize":
		return task + " has priority " + text
	case "delete-task":
		return task + " is deleted"
	}
	return ""
}

// taskSeparator reports whether a character separates ids of tasks.
func taskSeparator(r rune) bool { return r == ',' || r == ' ' || r == '\n' }

// messageGroup sends a message to each member of a group.
func (s *screenTeam) messageGroup(ctx context.Context, d view.Deed) (view.Done, error) {
	c, err := s.caller(ctx, s.team)
	if err != nil {
		return view.Done{}, err
	}
	names, ok, err := s.team.Alike(ctx, c, d.Group)
	if !ok && err == nil {
		err = team.Errorf(team.CodeInvalid, "%q names no group", d.Group).WithHint("worker-*")
	}
	if err != nil {
		return view.Done{}, err
	}
	message, _ := view.ActionByID("message")
	var ids []string
	for _, name := range names {
		one, err := s.Do(ctx, view.Deed{Action: message.ID, Member: name, Text: d.Text})
		if err != nil {
			return view.Done{}, team.Errorf(team.CodeOf(err), "%d of %d are written to, not %s: %w", len(ids), len(names), name, err)
		}
		ids = append(ids, one.Message)
	}
	return view.Done{Said: fmt.Sprintf("%d of %s are written to", len(ids), d.Group), Message: strings.Join(ids, ",")}, nil
}

// caller is the person at the screen: the log says by which one.
func (s *screenTeam) caller(ctx context.Context, t *tool.Team) (tool.Caller, error) {
	c, err := s.app.caller(ctx, t)
	if c.Person {
		c.Door = s.door
	}
	return c, err
}

// deedInput is the input of the action's operation.
func deedInput(a view.Action, d view.Deed) (map[string]any, error) {
	in := map[string]any{}
	switch a.ID {
	case "approve":
		return map[string]any{"request_id": fmt.Sprint(d.Approval), "approve": true}, nil
	case "approve-always":
		return map[string]any{"request_id": fmt.Sprint(d.Approval), "approve": true, "always": true}, nil
	case "reject":
		return map[string]any{"request_id": fmt.Sprint(d.Approval), "approve": false, "feedback": d.Text, "comments": d.Comments > 0}, nil
	case "approve-edited":
		if !json.Valid([]byte(d.Text)) {
			return nil, team.Errorf(team.CodeInvalid, "the permitted input of the tool is not valid JSON")
		}
		return map[string]any{"request_id": fmt.Sprint(d.Approval), "approve": true, "updated_input": json.RawMessage(d.Text)}, nil
	case "answer":
		return map[string]any{"request_id": fmt.Sprint(d.Approval), "approve": true, "answers": strings.Split(strings.TrimSpace(d.Text), "\n")}, nil
	case "message":
		return map[string]any{"type": "message", "recipient": d.Member, "content": d.Text}, nil
	case "reply":
		return map[string]any{"type": "message", "recipient": d.Member, "content": d.Text, "parent_message_id": d.Message}, nil
	case "send-again":
		return map[string]any{"type": "message", "recipient": d.Member, "forward": d.Message, "idempotency_key": d.Again()}, nil
	case "broadcast":
		return map[string]any{"type": "broadcast", "content": d.Text}, nil
	case "kill":
		return map[string]any{"name": d.Member, "force": true, "leave": true}, nil
	case "shutdown":
		return map[string]any{"name": d.Member, "leave": true}, nil
	case "shutdown-team", "delete-team":
		return in, nil
	case "plan-mode":
		return map[string]any{"name": d.Member, "mode": "plan"}, nil
	case "default-mode":
		return map[string]any{"name": d.Member, "mode": "default"}, nil
	case "add-task":
		subject, rest, _ := strings.Cut(strings.TrimSpace(d.Text), "\n")
		return map[string]any{"subject": subject, "description": strings.TrimSpace(rest)}, nil
	case "retry":
		return map[string]any{"task_id": d.Task}, nil
	}
	switch a.Operation {
	case "ReviewAdd":
		if d.Approval != 0 {
			in["plan"] = fmt.Sprint(d.Approval)
		} else {
			in["member"] = d.Member
		}
		switch {
		case a.ID == "reviewed" || a.ID == "not-reviewed":
			in["file"], in["reviewed"] = d.Path, a.ID == "reviewed"
		case d.Comment != "":
			in["comment"], in["text"] = d.Comment, d.Text
		case d.Approval != 0:
			in["lines"], in["text"] = d.Lines, d.Text
		default:
			in["file"], in["lines"], in["old"], in["text"] = d.Path, d.Lines, d.Old, d.Text
		}
		return in, nil
	case "ReviewSend":
		return map[string]any{"member": d.Member, "task": a.ID == "review-task"}, nil
	case "ReviewAnswer":
		return map[string]any{"member": d.Member, "comment": d.Comment, "handled": true}, nil
	}
	if strings.HasPrefix(a.Operation, "Teammate") {
		in["name"] = d.Member
		return in, nil
	}
	in["task_id"] = d.Task
	switch a.ID {
	case "assign":
		in["owner"] = strings.TrimSpace(d.Text)
	case "release":
		in["owner"] = ""
	case "rename-task":
		in["subject"] = strings.TrimSpace(d.Text)
	case "describe-task":
		in["description"] = strings.TrimSpace(d.Text)
	case "command-task":
		in["metadata"] = map[string]string{"run": strings.TrimSpace(d.Text)}
	case "depend":
		in["addDependsOn"] = strings.FieldsFunc(d.Text, taskSeparator)
	case "prioritize":
		var n int
		if _, err := fmt.Sscan(d.Text, &n); err != nil {
			return nil, team.Errorf(team.CodeInvalid, "a priority is a number, not %q", strings.TrimSpace(d.Text))
		}
		in["priority"] = n
	case "delete-task":
		in["status"] = "deleted"
	default:
		return nil, team.Errorf(team.CodeInternal, "action %s has no input", a.ID)
	}
	return in, nil
}

// attach goes to a member's terminal by the command for that, and comes back with it. If the screen
// is in a popup that would cover the member, left is true.
func (s *screenTeam) attach(ctx context.Context, member string) (left bool, err error) {
	exe, err := executable()
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, exe, "attach", member, "--team", s.key)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	var said strings.Builder
	cmd.Stderr = &said
	restore := keepModes(os.Stdin, os.Stdout)
	err = cmd.Run()
	restore(ctx, err)
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		if text == "" {
			text = err.Error()
		}
		return false, team.Errorf(team.CodeUnavailable, "attach %s: %s", member, text)
	}
	pane, err := s.team.Pane(ctx, member)
	return err == nil && tmux.InPopup(pane.Socket, os.Environ()), nil // without a pane it has ended meanwhile
}

// Pauses until a terminal is restored by others: between two looks, and after the last one.
const (
	modesLook  = 50 * time.Millisecond
	modesLooks = 20
)

// keepModes returns a function that restores the modes that a terminal has now, if a program that ended with an error
// has left it in others.
func keepModes(in, out *os.File) (restore func(ctx context.Context, err error)) {
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return func(context.Context, error) {}
	}
	same := func() bool {
		now, err := term.GetState(fd)
		return err != nil || *now == *before // a terminal that has gone has no modes
	}
	return func(ctx context.Context, err error) {
		if err == nil {
			return
		}
		// The server of tmux restores the terminal of a client that was killed, once it knows: its modes, and then what
		// they cannot restore.
		for range modesLooks {
			if pause.For(ctx, modesLook) != nil || same() {
				break
			}
		}
		_ = pause.For(ctx, modesLook)
		if !same() {
			_ = term.Restore(fd, before)
			_, _ = out.Write(vt.Restore(true))
		}
	}
}
