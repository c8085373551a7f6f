package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// child opens a child of the member's session and gives it a task.
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

// owned opens the member's session, as its first life does.
func (s *served) owned() {
	s.t.Helper()
	if _, err := s.led.OpenSession(s.t.Context(), ledger.NewSession{Key: s.m.SessionKey, Member: s.m.SessionKey}); err != nil {
		s.t.Fatal(err)
	}
}

// allTurns are the turns of all sessions of the member.
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

// TestAnnounceStorm: twenty children run beside each other and beside their parent, and all
// end while it is busy: what they announce is one turn of its, each is shown to that turn
// once, and nothing is announced twice.
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

// announcedOnce checks that each of the children has announced one turn, that the parent
// has each in its transcript once, and that a turn was shown each.
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

// TestChildrenKilledAtEveryStep: an agent with three children at work is killed before and
// after each of its commits. The next life goes on with all of them: each answers once, and
// each end is announced once.
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
		t.Fatal("killed, and nobody did it")
	}
	check(whole)
	steps, every := whole.steps(), 1
	if testing.Short() {
		every = 9
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

// TestWakeSurvives: a wake that was asked for in one life begins its turn in the next, at
// its time, although nothing else happens.
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
