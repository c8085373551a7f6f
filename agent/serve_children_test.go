package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// child opens a child of the member's session and queues a task for it.
func (s *served) child(n int, task string) (key string) {
	s.t.Helper()
	key = fmt.Sprintf("agent:default:subagent:%d", n)
	_, err := s.led.OpenSession(s.t.Context(), ledger.NewSession{Key: key, Owner: s.m.SessionKey, Label: "kid " + strconv.Itoa(n)})
	if err == nil {
		_, err = s.led.TakeIn(s.t.Context(), ledger.TakeIn{Session: key, Hop: 1, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{
			Kind: ledger.EntryUser, Content: task, Source: "task",
		}}}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// owned opens the member's session, as the agent does at its first start.
func (s *served) owned() {
	s.t.Helper()
	if _, err := s.led.OpenSession(s.t.Context(), ledger.NewSession{Key: s.m.SessionKey, Member: s.m.SessionKey}); err != nil {
		s.t.Fatal(err)
	}
}

// allTurns returns the turns of all sessions of the member.
func (s *served) allTurns() []ledger.TurnJob {
	s.t.Helper()
	list, err := s.led.TurnJobs(context.WithoutCancel(s.t.Context()), ledger.JobFilter{Member: s.m.SessionKey})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// rested waits until every turn has ended and the member is idle.
func (s *served) rested() {
	s.t.Helper()
	s.until("the turns to end", func() bool {
		jobs := s.allTurns()
		for _, j := range jobs {
			if !j.State.Ended() {
				return false
			}
		}
		return len(jobs) > 0 && len(s.messages("dev", team.KindIdle)) > 0
	})
}

// TestAnnounceStorm checks that twenty children run in parallel with each other and with their
// parent, and all end while it is busy: their announcements start one turn, which is shown each
// of them once.
func TestAnnounceStorm(t *testing.T) {
	t.Parallel()
	const kids = 20
	var all sync.WaitGroup
	all.Add(kids)
	together := make(chan struct{})
	go func() { all.Wait(); close(together) }()
	var s *served
	s = newServed(t,
		echo("meet", false, func(ctx context.Context, _ string) string {
			all.Done()
			select {
			case <-together:
			case <-ctx.Done():
			}
			return "met"
		}),
		echo("work", false, func(ctx context.Context, _ string) string {
			s.until("the children to end", func() bool {
				ended := 0
				for _, j := range s.allTurns() {
					if j.Session != s.m.SessionKey && j.State.Ended() {
						ended++
					}
				}
				return ended == kids || ctx.Err() != nil
			})
			return "worked"
		}))
	for name, n := range map[string]int{ledger.SettingChildren: kids, ledger.SettingLane + string(team.LaneSubagent): kids} {
		if err := s.led.Set(t.Context(), name, n); err != nil {
			t.Fatal(err)
		}
	}
	s.owned()
	for i := range kids {
		s.child(i, fmt.Sprintf("@@call meet {}\n@@say kid %d is through", i))
	}
	s.tell("@@call work {}\n@@say I have worked")
	stop := s.start(ServeIn{})
	s.rested()
	_ = stop(context.Canceled)
	s.announcedOnce(kids)
	turns := map[int64]int{}
	list, err := s.led.Announces(context.WithoutCancel(t.Context()), s.m.SessionKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		turns[a.Job]++
	}
	if len(turns) != 1 || len(s.turns()) != 2 {
		t.Errorf("announces by turn %v, turns %+v", turns, s.turns())
	}
}

// announcedOnce checks that each child has announced one turn, that the parent's transcript
// contains each announcement once, and that a turn was shown each of them.
func (s *served) announcedOnce(kids int) {
	s.t.Helper()
	list, err := s.led.Announces(context.WithoutCancel(s.t.Context()), s.m.SessionKey)
	if err != nil || len(list) != kids {
		s.t.Fatalf("%d announces, want %d: %v", len(list), kids, err)
	}
	children := map[string]bool{}
	for _, a := range list {
		if children[a.Child] || a.Job == 0 || a.Child == a.Parent {
			s.t.Errorf("%+v", a)
		}
		children[a.Child] = true
	}
	n := 0
	for _, e := range s.transcript() {
		n += strings.Count(e.Content, "[@agent:default#default] finish")
		if strings.Contains(e.Content, "is through") || strings.Contains(e.Content, "[Context") {
			s.t.Errorf("entry %d has what a turn alone is shown: %s", e.Seq, e.Content)
		}
	}
	if n != kids {
		s.t.Errorf("%d ends are in the transcript, want %d:\n%s", n, kids, s.dump())
	}
}

// TestChildrenKilledAtEveryStep kills an agent with three working children before and after each
// of its commits. The next process continues all of them: each child answers once, and each end
// is announced once.
func TestChildrenKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	const kids = 3
	begin := func(t *testing.T) *served {
		s := newServed(t)
		s.owned()
		for i := range kids {
			s.child(i, fmt.Sprintf("@@call append {\"line\":\"kid%d\"}\n@@say kid %d is through", i, i))
		}
		return s
	}
	check := func(s *served) {
		s.t.Helper()
		s.announcedOnce(kids)
		lines, err := os.ReadFile(filepath.Join(s.dir, "lines"))
		for i := range kids {
			key := fmt.Sprintf("agent:default:subagent:%d", i)
			entries, eerr := s.led.Entries(s.t.Context(), key, 0, 0)
			said, lost := 0, 0
			for _, e := range entries {
				if e.Kind == ledger.EntryAssistant && e.Content == fmt.Sprintf("kid %d is through", i) {
					said++
				}
				lost += strings.Count(e.Content, ledger.ResultLost[:40])
			}
			n := strings.Count(string(lines), fmt.Sprintf("kid%d", i))
			if eerr != nil || said != 1 || n > 1 || n == 0 && lost == 0 {
				s.t.Errorf("kid %d: said %d times, done %d times, lost %d (%v, %v)", i, said, n, lost, eerr, err)
			}
		}
	}
	whole := begin(t)
	if whole.life(0) {
		t.Fatal("the agent was killed without a request")
	}
	check(whole)
	steps, every := whole.steps(), 1
	if testing.Short() {
		every = 13
	}
	for kill := 1; kill <= steps; kill += every {
		t.Run(strconv.Itoa(kill), func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.life(kill)
			s.life(0)
			check(s)
		})
	}
}

// TestWakeSurvives checks that a wake queued before the agent starts begins its turn at its time,
// without any other event.
func TestWakeSurvives(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	s.owned()
	at := time.Now().Add(500 * time.Millisecond).UnixMilli()
	_, err := s.led.QueueTurn(t.Context(), ledger.NewTurn{Session: s.m.SessionKey, Input: "[Wake] look again\n@@say I have looked", Lane: team.LaneCron, NotBefore: at})
	if err != nil {
		t.Fatal(err)
	}
	s.start(ServeIn{})
	s.said("I have looked")
	if j := s.turns()[0]; j.Cause != team.CauseWake || j.Lane != team.LaneCron || j.StartedAt < at {
		t.Errorf("%+v", j)
	}
}

// turnFunc is a Turns.
type turnFunc func(context.Context, ledger.ClaimedTurn) llm.Outcome

func (f turnFunc) Turn(ctx context.Context, turn ledger.ClaimedTurn, _ llm.Desk) (llm.Outcome, error) {
	return f(ctx, turn), nil
}

// TestTurnBeginsAgainAtTheEnd checks that a stop gives a turn back, and waits for it, that the end of
// a child has claimed again just after the stop has queued it: two goroutines have the same turn for
// a moment.
func TestTurnBeginsAgainAtTheEnd(t *testing.T) {
	t.Parallel()
	var goOn [3]chan struct{} // of the parent's turn, by attempt
	for i := range goOn {
		goOn[i] = make(chan struct{})
	}
	again := ledger.ClaimedTurn{Job: ledger.TurnJob{ID: 1, Session: "dev", Attempt: 2}}
	began := make(chan struct{})
	s := &server{running: map[*running]bool{}, asks: make(chan ask), ended: make(chan *running)}
	s.in.Turns = turnFunc(func(ctx context.Context, turn ledger.ClaimedTurn) (o llm.Outcome) {
		if turn.Job.Session != "dev" {
			return llm.Outcome{Next: &again}
		}
		if turn.Job.Attempt == again.Job.Attempt {
			close(began)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, errGivenBack) {
				t.Errorf("its context ended with %v", cause)
			}
		}
		<-goOn[turn.Job.Attempt]
		return o
	})
	first := s.start(t.Context(), ledger.ClaimedTurn{Job: ledger.TurnJob{ID: 1, Session: "dev", Attempt: 1}})
	s.start(t.Context(), ledger.ClaimedTurn{Job: ledger.TurnJob{ID: 2, Session: "child", Attempt: 1}})
	ended := make(chan struct{})
	go func() { s.endTurns(nil); close(ended) }()
	<-began
	close(goOn[1])
	for there := true; there; {
		a := ask{done: make(chan struct{}), do: func(context.Context) {
			there = s.running[first]
			if r := s.turnOf("dev"); r == nil || r.job.Attempt != again.Job.Attempt {
				t.Errorf("the turn that runs is %+v", r)
			}
		}}
		select {
		case s.asks <- a:
			<-a.done
		case <-ended:
			t.Fatal("the second attempt still runs")
		}
	}
	close(goOn[2])
	<-ended
}
