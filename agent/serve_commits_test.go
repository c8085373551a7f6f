package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/script"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// diary records the commits of an agent, its calls and its requests, in order.
type diary struct {
	script.Provider
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) Stream(ctx context.Context, q model.Request, on func(model.Delta)) (model.Answer, error) {
	d.note("request")
	return d.Provider.Stream(ctx, q, on)
}

// between returns the commits from the first line that is from to the next call or request.
func (d *diary) between(t *testing.T, from string) []string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.lines, from)
	if i < 0 {
		t.Fatalf("no %q in %q", from, d.lines)
	}
	n := slices.IndexFunc(d.lines[i+1:], func(line string) bool { return line == "request" || line == "the call begins" })
	if n < 0 {
		t.Fatalf("nothing after %q in %q", from, d.lines)
	}
	return slices.DeleteFunc(slices.Clone(d.lines[i+1:i+1+n]), func(line string) bool {
		return !strings.HasSuffix(line, ", done") || line == "claim a turn, done" // there may be none
	})
}

// claims records the turns that are claimed by a commit of their own.
type claims struct {
	*ledger.Ledger
	diary *diary
}

func (c claims) ClaimTurn(ctx context.Context, in ledger.ClaimTurnIn) (*ledger.ClaimedTurn, error) {
	turn, err := c.Ledger.ClaimTurn(ctx, in)
	if turn != nil {
		c.diary.note("claim one turn, done")
	}
	return turn, err
}

// TestOneCommit checks that one commit is between mail at rest and its request, an answer and its
// first call, the end of a call and the request of the turn that a message has steered to, or that
// other mail becomes part of, and between the last answer of a child and its parent's request.
func TestOneCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, want string }{
		{"rest", "take mail in", "take mail in, done"},
		{"begin", "request", "record an answer, done"},
		{"steer", "the call ends", "steer a turn, done"},
		{"mail", "the call ends", "take mail in, done"},
		{"neither", "the call ends", "record the results of calls, done"},
		{"child", "end a turn", "end a turn, done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &diary{}
			var s *served
			s = newServed(t, echo("work", false, func(context.Context, string) string {
				d.note("the call begins")
				switch c.name {
				case "steer":
					s.tell("@@say steered")
				case "mail":
					s.send(ledger.NewMessage{Kind: team.KindMessage, From: "cleo", To: "dev", Text: "for your information", Summary: "x"})
				}
				d.note("the call ends")
				return "worked"
			}))
			s.model = d
			s.owned()
			if c.name == "mail" {
				s.join("cleo", team.TeammateSessionKey(""), team.RoleExecutor)
			}
			if c.name == "child" {
				s.child(1, "@@say found")
			} else {
				s.tell("the task\n@@call work {}\n@@say done")
			}
			s.startIn(WithSteps(t.Context(), func(_, step string) { d.note(step) }), ServeIn{Sessions: claims{s.led, d}})
			s.rested()
			if got := d.between(t, c.from); len(got) != 1 || got[0] != c.want {
				t.Errorf("%q; want %q\n%s", got, c.want, s.dump())
			}
		})
	}
}
