package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/team"
)

// check is one row. A non-empty note is shown in the table instead of "yes".
type check struct {
	name string
	do   func(ctx context.Context, w *world, c agentlab.Client) (note string, err error)
}

var checks = []check{
	{"the prompt arrives", promptArrives},
	{"its state becomes idle", becomesIdle},
	{"a message wakes it when idle", wakes},
	{"the message is accepted on evidence", accepted},
	{"a message in mid-turn arrives", midTurn},
	{"it calls our tools", callsTools},
	{"a permission is routed and answered", permission},
	{"it is interrupted", interrupted},
	{"kill -9 of the supervisor in mid-turn loses nothing", supervisorKilled},
	{"it resumes the same conversation", resumes},
	{"renamed while it runs, it goes on in its conversation", renamed},
	{"a plan is shown and answered", planned},
	{"a question is asked and answered", questioned},
	{"a rule of the team answers for a person", ruled},
	{"it commits as its person", commits},
	{rowKilled, mailKilled},
	{rowInterrupted, mailInterrupted},
	{rowAmid, mailAmidKills},
	{rowDialog, mailBehindDialog},
	{rowDraft, mailBehindDraft},
	{rowBusy, mailBusy}, // with long messages, which every later request of the conversation contains
	{rowIdle, mailIdle},
	{"asked to stop, it ends by itself within 10 s", shutsDown},
	{"a turn that fails is told as failed", fails},
	{"a message while its hooks are off arrives", withoutHooks},
	{rowServers, ownServers},
	{rowBridge, overBridge},
	{rowStarts, startsOverBridge},
	{rowByHand, startsByHand},
	{rowLate, lateVersion},
	{rowAnew, beginsAnew},
	{"the person's configuration is as it was", untouched},
	{"a stranger's repository runs nothing before its person trusts it", inStrangersRepository},
}

func promptArrives(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	w.prompt = w.token("prompt")
	if _, err := w.teamctl(ctx, "spawn", "mate", "--agent", c.Name, "--session", "--prompt", "@@say "+w.prompt); err != nil {
		return "", err
	}
	if err := w.trustsNew(ctx, c, "mate"); err != nil {
		return "", err
	}
	_, err := w.asked(ctx, w.prompt)
	return "", err
}

func (w *world) idle(ctx context.Context, name string) error {
	_, err := w.becomes(ctx, name, "idle")
	return err
}

func becomesIdle(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	return "", w.idle(ctx, "mate")
}

func (w *world) send(ctx context.Context, text string) (id string, err error) {
	return w.sendTo(ctx, "mate", text)
}

func (w *world) sendTo(ctx context.Context, name, text string) (id string, err error) {
	out, err := w.teamctl(ctx, "send", name, text, "--json")
	if err != nil {
		return "", err
	}
	var m struct {
		ID string `json:"message_id"`
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		return "", fmt.Errorf("read %q: %w", out, err)
	}
	return m.ID, nil
}

// say sends one script and waits until the model has carried it out.
func (w *world) say(ctx context.Context, what string) (id string, err error) {
	token := w.token(what)
	if id, err = w.send(ctx, "@@say "+token); err != nil {
		return "", err
	}
	_, err = w.answered(ctx, token)
	return id, err
}

func wakes(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	_, err := w.say(ctx, "woken")
	return "", err
}

func accepted(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	id, err := w.say(ctx, "receipt")
	if err != nil {
		return "", err
	}
	return "", w.delivered(ctx, id)
}

// delivered waits until a message was accepted on evidence.
func (w *world) delivered(ctx context.Context, id string) error {
	return w.until(ctx, "accepted", func() (bool, error) {
		state, err := w.state(ctx, id)
		if err == nil && state != "accepted" && state != "read" {
			err = errors.New("it is " + state)
		}
		return err == nil, err
	})
}

// state is how far a message to one member is.
func (w *world) state(ctx context.Context, id string) (string, error) {
	out, err := w.teamctl(ctx, "message", "show", id, "--json")
	if err != nil {
		return "", err
	}
	var m struct{ Deliveries []struct{ State string } }
	if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Deliveries) != 1 {
		return "", errors.Join(err, fmt.Errorf("read %q: %d deliveries", out, len(m.Deliveries)))
	}
	return m.Deliveries[0].State, nil
}

// long begins a turn that works for some seconds, and returns once the turn has begun.
func (w *world) long(ctx context.Context, seconds int, then string) error {
	return w.longOf(ctx, "mate", seconds, then)
}

func (w *world) longOf(ctx context.Context, name string, seconds int, then string) error {
	return w.runs(ctx, name, fmt.Sprintf("sleep %d", seconds), then)
}

// scripts is how often a script is sent until the model carries it out.
const scripts = 3

// runs begins a turn that runs a command and then says a word, and returns once the model has asked
// for the command. A late interrupt may end a turn before the model is asked. What a hook of the
// next turn adds then precedes the program's note of that interrupt in the request, and the
// scripted model drops what precedes the note: the message has arrived, and its script is sent
// again.
func (w *world) runs(ctx context.Context, name, command, then string) error {
	for range scripts {
		before := len(w.model.Requests())
		if _, err := w.sendTo(ctx, name, "@@shell "+command+"\n@@say "+then); err != nil {
			return err
		}
		if began, err := w.began(ctx, name, then, before); began || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s came in %d requests, and the model has called no tool", then, scripts)
}

// began waits until the model has answered the request with a word by a call, or until the agent is
// at rest without that request. Requests up to number before are older.
func (w *world) began(ctx context.Context, name, then string, before int) (began bool, err error) {
	if _, err := w.request(ctx, then, func(r fakemodelRequest) bool { return r.Seq > before && strings.Contains(r.New, then) }); err != nil {
		return false, err
	}
	err = w.until(ctx, then+" carried out", func() (bool, error) {
		calls := func(r fakemodelRequest) bool {
			return !r.Side && strings.Contains(r.New, then) && strings.HasPrefix(r.Answer, "call ")
		}
		if began = slices.ContainsFunc(w.model.Requests()[before:], calls); began {
			return true, nil
		}
		m, err := w.member(ctx, name)
		if err == nil && m.Activity != "idle" {
			err = fmt.Errorf("it is %s", m.Activity)
		}
		return err == nil, err
	})
	return began, err
}

func midTurn(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	return w.midTurn(ctx, "mate")
}

func (w *world) midTurn(ctx context.Context, name string) (string, error) {
	if err := w.idle(ctx, name); err != nil {
		return "", err
	}
	then, mid := w.token("then"), w.token("mid")
	if err := w.longOf(ctx, name, w.busy, then); err != nil {
		return "", err
	}
	if _, err := w.sendTo(ctx, name, "@@say "+mid); err != nil {
		return "", err
	}
	r, err := w.asked(ctx, mid)
	if err != nil {
		return "", err
	}
	n := w.arrivals("@@say " + mid)
	if strings.Contains(r.New, "Stop hook feedback:") && strings.Contains(r.New, "Stop hook blocking error:") {
		n-- // Claude Code 2.1.329 shows the model twice what an answer to its hook says that any version takes
	}
	if n != 1 {
		return "", fmt.Errorf("it came %d times: %q", n, r.New)
	}
	for _, q := range w.model.Requests() {
		if q.Answer == "say "+then && q.Seq < r.Seq {
			return "at the end of the turn", nil
		}
	}
	return "at the tool boundary", nil
}

// arrivals counts a text at the start of a line, since its summary contains the words, too.
func (w *world) arrivals(text string) int {
	return w.model.Arrivals("\n"+text) + w.model.Arrivals(`\n`+text) // a tool's result may be JSON
}

func callsTools(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	token := w.token("tool")
	if _, err := w.send(ctx, fmt.Sprintf(`@@call %sSendMessage {"type":"message","recipient":"team-lead","content":"%s"}`, c.Tool, token)); err != nil {
		return "", err
	}
	return "", w.until(ctx, "sent", func() (bool, error) {
		out, err := w.teamctl(ctx, "message", "ls", "--json")
		return strings.Contains(out, token) && strings.Contains(out, `"mate"`), err
	})
}

// commits checks that a person's identity in a global git configuration is in effect in the agent's
// shell.
func commits(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	token := w.token("commit")
	commit := "git commit --allow-empty -m " + token
	script := "@@shell " + commit
	if c.Sandboxed {
		script = strings.Replace(c.Ask, "touch asked", commit, 1)
	}
	if _, err := w.send(ctx, script+"\n@@say "+token); err != nil {
		return "", err
	}
	if c.Sandboxed {
		if err := w.allow(ctx, c); err != nil {
			return "", err
		}
		note = "it asks for each"
	}
	if _, err := w.answered(ctx, "say "+token); err != nil {
		return "", err
	}
	out, err := w.Run(ctx, "git", "-C", m.Worktree, "log", "-1", "--format=%s %an <%ae> %cn <%ce>")
	if want := token + " a <a@example.org> a <a@example.org>\n"; err == nil && out != want {
		err = fmt.Errorf("it committed %q, want %q", out, want)
	}
	return note, err
}

func permission(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	after := w.token("after")
	if _, err := w.send(ctx, c.Ask+"\n@@say "+after); err != nil {
		return "", err
	}
	id, err := w.inQueue(ctx, "permission", "")
	if err != nil {
		return "", err
	}
	path := filepath.Join(m.Worktree, "asked")
	if _, err := os.Stat(path); err == nil {
		return "", errors.New("it ran before it was allowed")
	}
	if _, err := w.teamctl(ctx, "approvals", "approve", id); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, after); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("it was allowed and did not run: %w", err)
	}
	return "", nil
}

// ruled checks that a call that a rule allows runs without a question, and that the queue shows the
// rule. Earlier versions of Claude Code ask at their own dialog, which does not show a command as it
// is.
func ruled(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if c.Older {
		return "-", nil
	}
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.Dir, "rules.yaml")
	if err := os.WriteFile(file, []byte("team: demo\npermissions:\n  allow: [{tool: shell, command: touch ruled}]\n"), 0o600); err != nil {
		return "", err
	}
	if _, err := w.teamctl(ctx, "approvals", "rules", "-f", file); err != nil {
		return "", err
	}
	after := w.token("after")
	if _, err := w.send(ctx, strings.Replace(c.Ask, "touch asked", "touch ruled", 1)+"\n@@say "+after); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, after); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(m.Worktree, "ruled")); err != nil {
		return "", fmt.Errorf("it was allowed and did not run: %w", err)
	}
	out, err := w.teamctl(ctx, "approvals", "--all")
	if err == nil && !strings.Contains(out, "approved by rules of the team") {
		err = fmt.Errorf("no rule has answered:\n%s", out)
	}
	return "", err
}

// interrupted checks that an interrupt ends the turn and the command that it runs. The command
// reads a pipe without a writer, because Claude Code 2.1.329 refuses a long sleep.
func interrupted(ctx context.Context, w *world, _ agentlab.Client) (_ string, err error) {
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	pipe := w.token("pipe")
	if err := syscall.Mkfifo(filepath.Join(m.Worktree, pipe), 0o600); err != nil {
		return "", fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(filepath.Join(m.Worktree, pipe))) }()
	command := func() (found []int) {
		for _, pid := range w.Processes() {
			if argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && string(argv) == "cat\x00"+pipe+"\x00" {
				found = append(found, pid)
			}
		}
		return found
	}
	if err := w.runs(ctx, "mate", "cat "+pipe, w.token("never")); err != nil {
		return "", err
	}
	if err := w.until(ctx, "running its command", func() (bool, error) { return len(command()) > 0, nil }); err != nil {
		return "", err
	}
	if _, err := w.teamctl(ctx, "interrupt", "mate"); err != nil {
		return "", err
	}
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	err = w.until(ctx, "rid of its command", func() (bool, error) {
		if left := command(); len(left) > 0 {
			return false, fmt.Errorf("processes %v are left", left)
		}
		return true, nil
	})
	if err != nil {
		return "", err
	}
	// An earlier version puts what its hooks add ahead of its own note of the interrupt, which
	// the scripted model answers. So its request counts, and not its answer.
	after := w.token("after-interrupt")
	if _, err := w.send(ctx, "go on "+after); err != nil {
		return "", err
	}
	_, err = w.asked(ctx, after)
	return "", err
}

// supervisor is the process of the team's supervisor.
func (w *world) supervisor() (int, error) {
	b, err := os.ReadFile(team.Home{Dir: w.Teams}.Team("demo").SupervisorPID())
	if err != nil {
		return 0, err
	}
	pid, _, err := team.ParseSupervisorPID(b)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", b, err)
	}
	return pid, nil
}

func supervisorKilled(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	before, err := w.member(ctx, "mate")
	if err != nil {
		return "", err
	}
	then, one, two := w.token("then"), w.token("one"), w.token("two")
	if err := w.long(ctx, w.busy, then); err != nil {
		return "", err
	}
	if _, err := w.send(ctx, "first "+one); err != nil {
		return "", err
	}
	pid, err := w.supervisor()
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill the supervisor %d: %w", pid, err)
	}
	if _, err := w.send(ctx, "second "+two); err != nil {
		return "", err
	}
	for _, token := range []string{one, two} {
		if _, err := w.asked(ctx, token); err != nil {
			return "", err
		}
	}
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	if _, err := w.say(ctx, "later"); err != nil {
		return "", err
	}
	for _, token := range []string{"first " + one, "second " + two} {
		if n := w.arrivals(token); n != 1 {
			return "", fmt.Errorf("%q came %d times", token, n)
		}
	}
	after, err := w.member(ctx, "mate")
	if err == nil && after.PID != before.PID {
		err = fmt.Errorf("the agent was %d and is %d", before.PID, after.PID)
	}
	return "", err
}

func resumes(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	if _, err := w.teamctl(ctx, "restart", "mate"); err != nil {
		return "", err
	}
	return "", w.inConversation(ctx, "mate")
}

// inConversation checks that an agent answers a message in the conversation that began with its prompt.
func (w *world) inConversation(ctx context.Context, name string) error {
	token := w.token("resumed")
	if _, err := w.sendTo(ctx, name, "@@say "+token); err != nil {
		return err
	}
	r, err := w.answered(ctx, token)
	if err == nil && !strings.Contains(r.Body, w.prompt) {
		err = errors.New("the first prompt is not in its conversation")
	}
	return err
}

// renamed checks an agent that gets another name in mid-turn, and its former name again: a message
// that it has not had is not lost, it goes on in its conversation, and its tools know its name.
func renamed(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	for _, names := range [][2]string{{"mate", "friend"}, {"friend", "mate"}} {
		from, to := names[0], names[1]
		if err := w.idle(ctx, from); err != nil {
			return "", err
		}
		then, mail, called := w.token("then"), w.token("mail"), w.token("called")
		if err := w.longOf(ctx, from, w.busy, then); err != nil {
			return "", err
		}
		if _, err := w.sendTo(ctx, from, "keep "+mail); err != nil {
			return "", err
		}
		if _, err := w.teamctl(ctx, "rename", "--restart", from, to); err != nil {
			return "", err
		}
		if _, err := w.asked(ctx, mail); err != nil {
			return "", err
		}
		if err := w.idle(ctx, to); err != nil {
			return "", err
		}
		if err := w.inConversation(ctx, to); err != nil {
			return "", err
		}
		call := fmt.Sprintf(`@@call %sSendMessage {"type":"message","recipient":"team-lead","content":"%s"}`, c.Tool, called)
		if _, err := w.sendTo(ctx, to, call); err != nil {
			return "", err
		}
		err := w.until(ctx, "heard by its name", func() (bool, error) {
			out, err := w.teamctl(ctx, "message", "ls", "--json")
			if err != nil {
				return false, err
			}
			var sent struct{ Messages []struct{ From, Text string } }
			if err := json.Unmarshal([]byte(out), &sent); err != nil {
				return false, fmt.Errorf("read %q: %w", out, err)
			}
			for _, m := range sent.Messages {
				if m.From != team.LeadName && m.Text == called {
					if m.From != to {
						return false, fmt.Errorf("its message is from %s, want %s", m.From, to)
					}
					return true, nil
				}
			}
			return false, errors.New("its message has not come")
		})
		if err != nil {
			return "", err
		}
	}
	return "", nil
}
