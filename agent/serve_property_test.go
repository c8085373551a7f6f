package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

var serveRounds = flag.Int("serve.rounds", 60, "how many `rounds` the test of an agent that is told, and killed, at random has")

// mortal writes to the ledger until it is killed. From then on no write of its process reaches
// the ledger, as after a kill -9 between two commits.
type mortal struct {
	ledger.Writer
	mu    sync.Mutex
	wrote int
	armed bool
	left  int  // writes before the kill
	after bool // the write at which it is killed is applied, but not answered
	dead  bool
	died  func()
}

var errKilled = team.Errorf(team.CodeConflict, "the process is dead")

func (m *mortal) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errKilled
	}
	if m.wrote++; !m.armed || m.left > 0 {
		m.left--
		return m.Writer.Write(ctx, op)
	}
	m.dead = true
	if m.after {
		_, _ = m.Writer.Write(ctx, op)
	}
	m.died()
	return nil, errKilled
}

// arm schedules the kill at the write that follows left more writes, before or after it is
// applied.
func (m *mortal) arm(left int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed, m.left, m.after = true, left, after
}

func (m *mortal) spare() (dead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = false
	return m.dead
}

func (m *mortal) state() (wrote int, dead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrote, m.dead
}

// diligent is a model that works on the tasks of the newest input, or on all open tasks if that
// input has a resume token or no open task. "[task N K]" requests K calls and then the answer
// "answer N.".
type diligent struct{}

var (
	taskMark   = regexp.MustCompile(`\[task (\d+) (\d+)\]`)
	answerMark = regexp.MustCompile(`answer (\d+)\.`)
	tokenLine  = regexp.MustCompile(`(?m)^resume: .*$`)
)

func (diligent) Models(context.Context) ([]model.Info, error) { return nil, nil }

func (diligent) Stream(_ context.Context, q model.Request, _ func(model.Delta)) (model.Answer, error) {
	calls := map[int]int{} // requested calls by task
	done, of := map[int]int{}, map[string]int{}
	answered := map[int]bool{}
	var order, newest []int
	all, in := false, false // the newest input has a token; the input continues
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			switch {
			case m.Role == model.RoleAssistant && p.Call != nil:
				var input struct{ Task int }
				if err := json.Unmarshal(p.Call.Input, &input); err != nil {
					return model.Answer{}, err
				}
				of[p.Call.ID] = input.Task
				in = false
			case m.Role == model.RoleAssistant:
				for _, a := range answerMark.FindAllStringSubmatch(p.Text, -1) {
					n, _ := strconv.Atoi(a[1])
					answered[n] = true
				}
				in = false
			case p.Result != nil:
				if p.Result.Text != ledger.ResultSkipped {
					done[of[p.Result.CallID]]++
				}
			case p.Text != "":
				if !in {
					newest, all, in = nil, false, true
				}
				all = all || strings.Contains(p.Text, "resume: ")
				for _, a := range taskMark.FindAllStringSubmatch(p.Text, -1) {
					n, _ := strconv.Atoi(a[1])
					calls[n], _ = strconv.Atoi(a[2])
					if !slices.Contains(order, n) {
						order = append(order, n)
					}
					newest = append(newest, n)
				}
			}
		}
	}
	left := func(list []int) []int {
		return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return answered[n] })
	}
	todo := left(newest)
	if all || len(todo) == 0 {
		todo = left(order)
	}
	message := model.Message{Role: model.RoleAssistant}
	for _, n := range todo {
		for i := done[n]; i < calls[n] && len(message.Parts) < 2; i++ {
			tool := []string{"work", "look"}[(n+i)%2]
			message.Parts = append(message.Parts, model.Part{Call: &model.Call{
				ID: fmt.Sprintf("c%d-%d", len(q.Messages), len(message.Parts)), Name: tool, Input: fmt.Appendf(nil, `{"task":%d,"i":%d}`, n, i),
			}})
		}
		if len(message.Parts) > 0 {
			return model.Answer{Message: message, Stop: model.StopCalls}, nil
		}
	}
	text := "ok"
	for i, n := range todo {
		if i == 0 {
			text = ""
		}
		text += fmt.Sprintf("answer %d. ", n)
	}
	message.Parts = []model.Part{{Text: text}}
	return model.Answer{Message: message, Stop: model.StopEnd}, nil
}

// act is an event for an agent; the agent may make then writes before the next one.
type act struct {
	what  string // lead, person, peer, child, again (for the newest child), kill
	calls int
	left  int // of a kill, as is after
	after bool
	then  int
}

func acts() *rapid.Generator[[]act] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			what:  rapid.SampledFrom([]string{"lead", "lead", "person", "peer", "child", "again", "kill", "kill"}).Draw(t, "what"),
			calls: rapid.IntRange(0, 4).Draw(t, "calls"),
			left:  rapid.IntRange(0, 20).Draw(t, "left"),
			after: rapid.Bool().Draw(t, "after"),
			then:  rapid.IntRange(0, 12).Draw(t, "then"),
		}
	}), 1, 14)
}

// driven is an agent with a record of its input.
type driven struct {
	*served
	mu     sync.Mutex
	ran    map[string]int // number of runs of each call, by input
	life   *mortal
	stop   func(error) error
	texts  map[string][]string // input of the member's session, by sender
	kids   map[string][]string // input of its children
	newest string              // newest child
	told   int
	kills  int
}

func newDriven(t *testing.T) *driven {
	d := &driven{ran: map[string]int{}, texts: map[string][]string{}, kids: map[string][]string{}}
	ran := func(_ context.Context, input string) string {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ran[input]++
		return "done " + input
	}
	d.served = newServed(t, echo("work", false, ran), echo("look", true, func(context.Context, string) string { return "seen" }))
	d.join("peer", team.TeammateSessionKey(""), team.RoleExecutor)
	d.model = diligent{}
	d.ref = model.Ref{Provider: "test", Model: "diligent"}
	d.owned()
	d.begin()
	return d
}

// begin starts the next process.
func (d *driven) begin() {
	ctx, cancel := context.WithCancelCause(d.t.Context())
	d.life = &mortal{Writer: ledger.Direct(d.led.DB()), died: func() { cancel(errKilled) }}
	r := *d.rig
	r.led = ledger.New(d.led.DB(), d.life)
	s := *d.served
	s.rig = &r
	stop := s.startIn(ctx, ServeIn{First: "you are dev"})
	d.stop = func(cause error) error {
		defer cancel(cause)
		return stop(cause)
	}
}

func (d *driven) do(a act) {
	d.told++
	text := fmt.Sprintf("[task %d %d]", d.told, a.calls)
	say := func(list map[string][]string, who string) { list[who] = append(list[who], text) }
	switch a.what {
	case "lead":
		d.tell(text)
		say(d.texts, "lead")
	case "person":
		_, err := d.led.TakeIn(d.t.Context(), ledger.TakeIn{Session: d.m.SessionKey, Inputs: []ledger.Input{PersonLine(text, nil)}})
		if team.ReasonOf(err) == team.ReasonBacklogFull {
			return // the person sees the error
		}
		if err != nil {
			d.t.Fatal(err)
		}
		say(d.texts, "person")
	case "peer":
		text = fmt.Sprintf("[news %d]", d.told)
		d.send(ledger.NewMessage{Kind: team.KindInfo, From: "peer", To: "dev", Text: text, Summary: "x"})
		say(d.texts, "peer")
	case "child":
		if len(d.kids) < ledger.DefaultChildren {
			d.newest = d.child(d.told, text)
			say(d.kids, d.newest)
		}
	case "again":
		if d.newest == "" {
			return
		}
		_, err := d.led.TakeIn(d.t.Context(), ledger.TakeIn{Session: d.newest, Hop: 1, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{
			Kind: ledger.EntryUser, Content: text, Source: text,
		}}}})
		if err != nil {
			d.t.Fatal(err)
		}
		say(d.kids, d.newest)
	case "kill":
		if d.kills++; d.kills > 2 { // a third kill without an entry in between would end the turn
			d.rest()
			d.kills = 1
		}
		d.life.arm(a.left, a.after)
	}
}

// goOn waits until the agent has made more writes, is idle or is dead, and restarts it if it is
// dead.
func (d *driven) goOn(more int) {
	from, _ := d.life.state()
	d.until("the agent to go on", func() bool {
		wrote, dead := d.life.state()
		return dead || wrote >= from+more || d.rests()
	})
	if _, dead := d.life.state(); dead {
		_ = d.stop(errKilled)
		d.begin()
	}
}

// rests reports whether no work is left. It checks in the order in which work moves: whatever has
// left the mailbox or the backlog meanwhile is a turn by the time the turns are read.
func (d *driven) rests() bool {
	unread, err := d.box("dev").Unread(context.WithoutCancel(d.t.Context()))
	if err != nil || len(unread) > 0 {
		return false
	}
	for _, s := range d.sessions() {
		if waits, err := d.led.Backlog(context.WithoutCancel(d.t.Context()), s); err != nil || len(waits) > 0 {
			return false
		}
	}
	for _, j := range d.allTurns() {
		if !j.State.Ended() {
			return false
		}
	}
	return true
}

// rest cancels a pending kill and waits until no work is left.
func (d *driven) rest() {
	for d.life.spare() {
		_ = d.stop(errKilled)
		d.begin()
	}
	d.until("everything to be done", d.rests)
}

func (d *driven) sessions() []string {
	return append([]string{d.m.SessionKey}, slices.Sorted(maps.Keys(d.kids))...)
}

// story returns the input and the answers of a session's transcript.
func (d *driven) story(session string) (told, answered string) {
	list, err := d.led.Entries(d.t.Context(), session, 0, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	open := map[string]bool{}
	for _, e := range list {
		switch e.Kind {
		case ledger.EntryUser:
			told += e.Content + "\n"
		case ledger.EntryAssistant:
			if len(open) > 0 {
				d.t.Errorf("%s: entry %d is an answer while calls have no result: %v", session, e.Seq, open)
			}
			answered += e.Content + "\n"
			var meta struct{ Calls []model.Call }
			if err := json.Unmarshal(e.Meta, &meta); err != nil {
				d.t.Fatal(err)
			}
			for _, c := range meta.Calls {
				open[c.ID] = true
			}
		case ledger.EntryToolResult:
			var meta struct{ Call string }
			if err := json.Unmarshal(e.Meta, &meta); err != nil {
				d.t.Fatal(err)
			}
			if !open[meta.Call] {
				d.t.Errorf("%s: entry %d is the result of no open call", session, e.Seq)
			}
			delete(open, meta.Call)
		case ledger.EntryEvent, ledger.EntryCompaction:
		}
	}
	return told, answered
}

// kept checks that each text of a session's input is there once, apart from tokens that repeat
// it, is answered once if it is a task, and is in order with the others of its sender.
func (d *driven) kept(session string, bySender map[string][]string, told, answered string) {
	whole := tokenLine.ReplaceAllString(told, "")
	for who, texts := range bySender {
		at := -1
		for _, text := range texts {
			if n := strings.Count(whole, text); n != 1 {
				d.t.Errorf("%s has %q of %s %d times", session, text, who, n)
			}
			i := strings.Index(whole, text)
			if i < at {
				d.t.Errorf("%s has %q of %s too early", session, text, who)
			}
			at = i
			if m := taskMark.FindStringSubmatch(text); m != nil {
				if n := strings.Count(answered, "answer "+m[1]+"."); n != 1 {
					d.t.Errorf("%s answers %q of %s %d times", session, text, who, n)
				}
			}
		}
	}
}

// check compares the transcripts, turns and calls with the input of the agent.
func (d *driven) check() {
	d.t.Helper()
	told, answered := d.story(d.m.SessionKey)
	d.kept(d.m.SessionKey, d.texts, told, answered)
	for kid, texts := range d.kids {
		told, answered := d.story(kid)
		d.kept(kid, map[string][]string{"its parent": texts}, told, answered)
	}
	ends := 0
	for _, j := range d.allTurns() {
		switch {
		case j.State == team.TurnFailed || j.State == team.TurnCancelled:
			d.t.Errorf("turn %d of %s is %s: %s", j.ID, j.Session, j.State, j.Reason)
		case j.Session != d.m.SessionKey && j.State == team.TurnDone:
			ends++
		}
	}
	if n := strings.Count(tokenLine.ReplaceAllString(told, ""), "[@agent:default#default] finish"); n != ends {
		d.t.Errorf("%d ends of children are reported, %d children have ended", n, ends)
	}
	lost := 0
	for _, s := range d.sessions() {
		list, err := d.led.Entries(d.t.Context(), s, 0, 0)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, e := range list {
			lost += strings.Count(e.Content, ledger.ResultLost)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for call, n := range d.ran {
		if n > 1 {
			lost -= n - 1 // the model repeats a call whose result is unknown
		}
		if lost < 0 {
			d.t.Errorf("%s was carried out %d times", call, n)
		}
	}
	d.alone()
}

// alone checks that no session ever had two running turns.
func (d *driven) alone() {
	running := map[string]string{}
	events, err := d.led.Events(d.t.Context(), 0, 0, ledger.EventFilter{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range events {
		if !strings.HasPrefix(e.What, "turn.") || e.Before == e.After {
			continue
		}
		if e.After == string(team.TurnRunning) {
			if running[e.ID] != "" {
				d.t.Errorf("%s: a turn begins (%s) while one runs (%s)", e.ID, e.Data, running[e.ID])
			}
			running[e.ID] = string(e.Data)
		}
		if e.Before == string(team.TurnRunning) {
			delete(running, e.ID)
		}
	}
}

// TestServeKeepsEverything sends an agent random input from random senders and kills it at
// random. Each text is in a transcript once and in order, each task is answered once even if the
// agent was steered away from it, each end of a child is reported once, and no session runs two
// turns at a time.
func TestServeKeepsEverything(t *testing.T) {
	t.Parallel()
	rounds := *serveRounds
	if testing.Short() {
		rounds = min(rounds, 8)
	}
	plans := acts()
	for i := range rounds {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			plan := plans.Example(i)
			d := newDriven(t)
			defer func() {
				if t.Failed() {
					t.Logf("%+v\n%s", plan, d.dump())
				}
			}()
			for _, a := range plan {
				d.do(a)
				d.goOn(a.then)
			}
			d.rest()
			_ = d.stop(errors.New("the test is over"))
			d.check()
		})
	}
}
