package script

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/agent/model"
)

var tools = []model.Tool{{Name: "shell"}, {Name: "TaskClaim"}, {Name: "TaskComplete"}, {Name: "TaskFail"}, {Name: "TaskRelease"}, {Name: "SendMessage"}}

// chat is a conversation with the model.
type chat struct {
	t    *testing.T
	msgs []model.Message
	name string
}

func (c *chat) user(text string) *chat {
	c.msgs = append(c.msgs, model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: text}}})
	return c
}

func (c *chat) result(text string, failed bool) *chat {
	last := c.msgs[len(c.msgs)-1].Parts[0].Call
	c.msgs = append(c.msgs, model.Message{Role: model.RoleUser, Parts: []model.Part{{Result: &model.Result{CallID: last.ID, Text: text, Failed: failed}}}})
	return c
}

// next returns the answer as a string: its text, or the tool and its input.
func (c *chat) next() string {
	c.t.Helper()
	if c.name == "" {
		c.name = Demo
	}
	var shown strings.Builder
	a, err := Provider{}.Stream(c.t.Context(), model.Request{Model: c.name, Tools: tools, Messages: c.msgs}, func(d model.Delta) { shown.WriteString(d.Text) })
	if err != nil {
		return err.Error()
	}
	c.msgs = append(c.msgs, a.Message)
	if a.Usage.InputTokens == 0 || a.Usage.OutputTokens == 0 || a.Usage.CostUSD != 0 || !a.Usage.CostKnown {
		c.t.Errorf("usage %+v", a.Usage)
	}
	if call := a.Message.Parts[0].Call; call != nil {
		if a.Stop != model.StopCalls {
			c.t.Errorf("stop %s", a.Stop)
		}
		return call.Name + " " + string(call.Input)
	}
	if shown.String() != a.Message.Parts[0].Text {
		c.t.Errorf("shown %q, kept %q", shown.String(), a.Message.Parts[0].Text)
	}
	return a.Message.Parts[0].Text
}

func (c *chat) want(words string) *chat {
	c.t.Helper()
	if got := c.next(); got != words {
		c.t.Fatalf("got  %s\nwant %s", got, words)
	}
	return c
}

const claimedTask = `{"success":true,"message":"claimed","task":{"id":"3","metadata":{"run":"make test"}}}`

// TestFollow checks that the model does the work of a member if there is no script.
func TestFollow(t *testing.T) {
	t.Parallel()
	offer := "Task #3 is ready, and nobody works on it: tests\nYou are idle."
	new := func(t *testing.T) *chat { return &chat{t: t} }
	// A task that fails its verification is failed, because a script cannot repair anything.
	t.Run("not verified", func(t *testing.T) {
		new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).result(claimedTask, false).want(`shell {"command":"make test"}`).
			result("ok\n[exit 0]", false).want(`TaskComplete {"summary":"ok\n[exit 0]","task_id":"3"}`).result(`{"success":true}`, false).
			want("Task 3 completed: ok").
			user("<teammate-message teammate_id=\"system\" type=\"info\">\nTask #3 is not completed: its verification failed (exit 1): make check\nIt is still yours.\nThe end of its output:\nFAIL: TestSum\n</teammate-message>").
			want(`TaskFail {"error":"FAIL: TestSum","task_id":"3"}`).
			result(`{"success":true}`, false).want("Task 3 completed: ok")
	})
	t.Run("something to tell", func(t *testing.T) {
		told := strings.Replace(claimedTask, `"run":`, `"tell":"main.go is mine","run":`, 1)
		new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).result(told, false).
			want(`SendMessage {"content":"main.go is mine","recipient":"team-lead","summary":"main.go is mine","type":"message"}`).
			result("sent", false).want(`shell {"command":"make test"}`)
	})
	t.Run("offered", func(t *testing.T) {
		new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).
			result(claimedTask, false).want(`shell {"command":"make test"}`).
			result("ok\nall pass", false).want(`TaskComplete {"summary":"ok\nall pass","task_id":"3"}`).
			result(`{"success":true}`, false).want("Task 3 completed: ok").
			user(`<teammate-message teammate_id="ann" type="message" message_id="m1">`+"\nwhat is done?\n</teammate-message>").
			want(`SendMessage {"content":"Task 3 completed: ok","recipient":"ann","type":"info"}`).
			result("sent", false).want("Task 3 completed: ok")
	})
	t.Run("assigned, fails", func(t *testing.T) {
		new(t).user("Task #3 is assigned to you: tests").want(`TaskClaim {"task_id":"3"}`).
			result(claimedTask, false).want(`shell {"command":"make test"}`).
			result("boom", true).want(`TaskFail {"error":"boom","task_id":"3"}`).
			result(`{}`, false).want("Task 3 failed: boom")
	})
	t.Run("no command", func(t *testing.T) {
		c := new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).result(`{"success":true,"task":{"id":"3"}}`, false)
		if got := c.next(); !strings.HasPrefix(got, "TaskFail") {
			t.Error(got)
		}
	})
	t.Run("another was faster", func(t *testing.T) {
		new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).result("already_claimed: bob has it", true).want("A claim was refused: already_claimed: bob has it").
			user("hm").want("ok")
	})
	t.Run("killed", func(t *testing.T) {
		lost := "The process that ran this call " + killed + ". Check."
		new(t).user(offer).want(`TaskClaim {"task_id":"3"}`).result(lost, true).want(`TaskClaim {"task_id":"3"}`).
			result(claimedTask, false).want(`shell {"command":"make test"}`).
			result(lost, true).want(`TaskRelease {"task_id":"3"}`).result("{}", false).want("Task 3 given back: The process that ran this call " + killed + ". Check.")
	})
	t.Run("mail that wants no answer", func(t *testing.T) {
		new(t).user(`<teammate-message teammate_id="ann" type="info">` + "\nx\n</teammate-message>").want("ok").
			user(`<teammate-message teammate_id="ann" type="message" verified="false">` + "\nx\n</teammate-message>").want("ok")
	})
	t.Run("request", func(t *testing.T) {
		new(t).user(`<teammate-message teammate_id="ann" type="task_request" message_id="m7">` + "\nx\n</teammate-message>").
			want(`SendMessage {"content":"I have done nothing so far.","parent_message_id":"m7","recipient":"ann","type":"task_response"}`)
	})
	t.Run("a script goes first", func(t *testing.T) {
		new(t).user("Task #3 is assigned to you: tests\n@@shell date\n@@say now").want(`shell {"command":"date"}`).
			result("today", false).want("now").user("and?").want(`TaskClaim {"task_id":"3"}`)
	})
}

// TestDeterministic checks that the same conversation gets the same answer, byte for byte.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	ask := func() string {
		a, err := Provider{}.Stream(t.Context(), model.Request{Model: Demo, Tools: tools,
			Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Text: "@@call TaskClaim {}"}}}}}, func(model.Delta) {})
		b, jerr := json.Marshal(a)
		if err != nil || jerr != nil {
			t.Fatal(err, jerr)
		}
		return string(b)
	}
	if a, b := ask(), ask(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(file, []byte("@@shell one\n@@say two\n@@fail 529 busy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := (&chat{t: t, name: file}).user("begin").want(`shell {"command":"one"}`).result("", false).want("two").user("go on").want("script: busy (status 529)")
	c.name = filepath.Join(t.TempDir(), "none")
	if got := c.next(); !strings.Contains(got, "no script") {
		t.Error(got)
	}
}

// TestSleep checks that the model sleeps, and that the end of the request interrupts it.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Provider{}.Stream(ctx, model.Request{Model: Demo, Messages: []model.Message{
			{Role: model.RoleUser, Parts: []model.Part{{Text: "@@sleep 1h\n@@say late"}}}}}, func(model.Delta) {})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
