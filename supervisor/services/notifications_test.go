package services

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// notified is a service whose team tells a file.
type notified struct {
	*testing.T
	*looptest.Bus
	team loop.Team
	n    *Notifications
	out  string
}

func newNotified(t *testing.T, members []ledger.Member, tm loop.Team, more ...string) notified {
	out := filepath.Join(t.TempDir(), "out")
	if err := tm.Ledger.Set(t.Context(), SettingNotify, append(more, "command:cat >> "+out)); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t, members...)
	n := NewNotifications(tm)
	b.StartService(n)
	b.Next() // what was owed
	return notified{t, b, tm, n, out}
}

// told waits for the file to have so many notices.
func (r notified) told(n int) []sink.Notice {
	r.Helper()
	var list []sink.Notice
	r.Until(fmt.Sprintf("%d notices", n), func() bool {
		data, _ := os.ReadFile(r.out)
		return strings.Count(string(data), "\n") >= n && !r.n.Busy()
	})
	data, err := os.ReadFile(r.out)
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var x sink.Notice
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			r.Fatalf("%q: %v", line, err)
		}
		list = append(list, x)
	}
	if len(list) != n {
		r.Fatalf("told %+v, want %d", list, n)
	}
	return list
}

// What waits for a person is sent to every sink; what members say to each other is not, and a
// sink that fails is an event without its secrets.
func TestNotifications(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	r := newNotified(t, nil, tm, "command:exit 3 # secret")
	r.n.Event(ledger.Event{What: "message.posted", Who: "ann"})
	r.n.Event(ledger.Event{What: "member.state", ID: "ann", After: string(team.Running)})
	if r.n.Busy() || r.Armed("notify") {
		t.Fatalf("queued %v", r.n.queue)
	}
	r.n.Event(ledger.Event{What: "member.state", ID: "ann", After: string(team.Failed), Seq: 5})
	r.n.Event(ledger.Event{What: "task.failed", ID: "7", Seq: 6})
	list := r.told(2)
	if list[0].What != "member.failed" || list[0].Kind != sink.Member || list[0].Select != "ann" || list[1].Select != "task:7" || list[1].Link != "" {
		t.Errorf("%+v", list)
	}
	failed, err := tm.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: "notify.failed"})
	if err != nil || len(failed) != 1 || !strings.Contains(string(failed[0].Data), "exit 3") || strings.Contains(string(failed[0].Data), "secret") {
		t.Errorf("%+v, %v", failed, err)
	}
	var seq int64
	if ok, err := tm.Ledger.Setting(t.Context(), SettingTold("command:cat >> "+r.out), &seq); !ok || err != nil || seq != 6 {
		t.Errorf("%d, %v, %v", seq, ok, err)
	}
	if err := tm.Ledger.Set(t.Context(), SettingWebURL, "https://page.example/"); err != nil {
		t.Fatal(err)
	}
	r.n.Event(ledger.Event{What: "task.failed", ID: "8", Seq: 7})
	if list = r.told(3); list[2].Link != "https://page.example/t/t?select=task%3A8" {
		t.Errorf("%+v", list[2])
	}
}

// A message of which nothing tells what became is told, unless it has turned up meanwhile.
func TestLostMailIsTold(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	r := newNotified(t, members, tm)
	mark := func(id string, state team.DeliveryState) {
		if ok, err := tm.Ledger.Mark(t.Context(), ledger.DeliveryMark{MessageID: id, Recipient: "ann", State: state, Reason: "nothing seen", Evidence: "seen"}); !ok || err != nil {
			t.Fatal(state, ok, err)
		}
	}
	lose := func() string {
		m, _, err := tm.Ledger.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []team.DeliveryState{team.Mailed, team.Injected, team.Unknown} {
			mark(m.ID, state)
		}
		return m.ID
	}
	lost, found := lose(), lose()
	mark(found, team.Accepted)
	for i, id := range []string{found, lost} {
		r.n.Event(ledger.Event{What: team.EventMessageUnknown, Who: "ann", ID: id, Seq: int64(i + 5)})
	}
	if list := r.told(1); list[0].Kind != sink.Mail || list[0].ID != lost || list[0].Select != "ann" || !strings.Contains(list[0].Title, "a message to ann") {
		t.Errorf("%+v", list)
	}
}

// Five within ten seconds are one; fewer are not.
func TestBurst(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	r := newNotified(t, nil, tm)
	fail := func(from, to int) {
		for i := from; i <= to; i++ {
			r.n.Event(ledger.Event{What: "task.failed", ID: fmt.Sprint(i), Seq: int64(i)})
		}
	}
	fail(1, 4)
	r.told(4)
	// The next ones wait for the end of the ten seconds, and are five with those before.
	r.n.began = time.Now().Add(time.Hour) // the ten seconds do not end meanwhile on a slow machine
	fail(5, 6)
	if d := r.Periods["notify"]; d < time.Hour-burstTime || d > time.Hour+burstTime {
		t.Errorf("waits %s", d)
	}
	list := r.told(5)
	if last := list[4]; last.Count != 2 || last.Title != "teamctl t: 2 things need you" || !strings.Contains(last.Text, "task 5 failed; task 6 failed") || last.Select != "" {
		t.Errorf("%+v", last)
	}
	r.n.began = time.Now().Add(-burstTime)
	fail(7, 7)
	if d := r.Periods["notify"]; d != company {
		t.Errorf("waits %s", d)
	}
	if list = r.told(6); list[5].Count != 0 || list[5].ID != "7" {
		t.Errorf("%+v", list[5])
	}
	r.n.began = time.Now().Add(-burstTime)
	fail(8, 12)
	if list = r.told(7); list[6].Count != 5 {
		t.Errorf("%+v", list[6])
	}
}

// A sink that hangs delays no other, and is told what came meanwhile.
func TestHangingSink(t *testing.T) {
	t.Parallel()
	came, release := make(chan string, 10), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n sink.Notice
		_ = json.NewDecoder(r.Body).Decode(&n)
		came <- n.ID
		<-release
	}))
	defer srv.Close()
	tm, _ := looptest.NewTeam(t)
	r := newNotified(t, nil, tm, "webhook:"+srv.URL)
	written := func(n int) {
		r.Until("the other sink is told", func() bool {
			data, _ := os.ReadFile(r.out)
			return strings.Count(string(data), "\n") == n
		})
	}
	r.n.Event(ledger.Event{What: "task.failed", ID: "1"})
	written(1)
	if id := <-came; id != "1" {
		t.Error(id)
	}
	r.n.Event(ledger.Event{What: "task.failed", ID: "2"})
	written(2)
	if !r.n.Busy() || len(came) > 0 {
		t.Errorf("busy %v, %d came", r.n.Busy(), len(came))
	}
	close(release)
	r.told(2)
	if id := <-came; id != "2" {
		t.Error(id)
	}
}

// A dialog is told unless a request stands for it; a request that is answered already is not.
func TestDialogsAreTold(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann", "bob")
	ctx := t.Context()
	waiting, trust := team.Waiting, team.WaitTrust
	for _, m := range members {
		starting, running, gen := team.Starting, team.Running, "g-"+m.Name
		for _, p := range []ledger.MemberPatch{{Observed: &starting, Generation: &gen}, {Observed: &running}, {Activity: &waiting, WaitsFor: &trust}} {
			p.SessionKey = m.SessionKey
			if _, err := tm.Ledger.UpdateMember(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := team.WaitFor("")
	if _, err := tm.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: members[1].SessionKey, WaitsFor: &none}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range members {
		a, err := tm.Ledger.As(m.Name).Ask(ctx, ledger.AskIn{RequestID: "perm-" + m.Name, Kind: ledger.ApprovePermission, Session: m.SessionKey, Subject: "Bash"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(a.Approval.ID))
	}
	r := newNotified(t, members, tm)
	r.n.Event(ledger.Event{What: "approval.asked", Who: "bob", ID: "999"}) // of which nothing is open
	for i, m := range members {
		r.n.Event(ledger.Event{What: "approval.asked", Who: m.Name, ID: ids[i]})
		r.n.Event(ledger.Event{What: "member.activity", ID: m.Name, Before: "working", After: "waiting(trust)"})
	}
	list := r.told(1) // five came: they are one, with what is still so
	if list[0].Count != 3 || !strings.Contains(list[0].Text, "ann waits for you; ann waits for you; bob waits for you") {
		t.Errorf("%+v", list)
	}
}

// All is done is told when nothing is left to do, once, and not when a turn ends beside others.
func TestDone(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann", "bob")
	ctx := t.Context()
	set := func(m ledger.Member, p ledger.MemberPatch) {
		t.Helper()
		p.SessionKey = m.SessionKey
		if _, err := tm.Ledger.UpdateMember(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	working, idle := team.Working, team.Idle
	for _, m := range members {
		starting, running, gen := team.Starting, team.Running, "g-"+m.Name
		set(m, ledger.MemberPatch{Observed: &starting, Generation: &gen})
		set(m, ledger.MemberPatch{Observed: &running, Activity: &working})
	}
	r := newNotified(t, members, tm)
	ends := func(m ledger.Member) {
		set(m, ledger.MemberPatch{Activity: &idle})
		r.n.Event(ledger.Event{What: "member.activity", ID: m.Name, Before: "working", After: "idle"})
		r.Fire("done")
		r.quiet()
	}
	ends(members[0])
	if r.n.Busy() || r.Armed("notify") {
		t.Fatal("told although bob works")
	}
	ends(members[1])
	list := r.told(1)
	if list[0].Kind != sink.Done || list[0].Title != "teamctl t: all is done" {
		t.Errorf("%+v", list)
	}
	r.n.Event(ledger.Event{What: "task.created", ID: "1"})
	if r.Armed("done") {
		t.Error("told again although nothing has ended since")
	}
}

// quiet runs what comes back from beside the loop within the time that a look takes.
func (r notified) quiet() {
	done := make(chan struct{})
	r.Go("", func(ctx context.Context) func() { return func() { close(done) } })
	r.Until("", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// What a killed supervisor has not told the next one tells, each sink what it lacks.
func TestOwedNotices(t *testing.T) {
	t.Parallel()
	tm, _ := looptest.NewTeam(t)
	ctx := t.Context()
	out := filepath.Join(t.TempDir(), "out")
	specs := []string{"command:cat >> " + out + "-new", "command:cat >> " + out, "command:cat >> " + out + "-2"} // the first one was just added
	if err := tm.Ledger.Set(ctx, SettingNotify, specs); err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for _, e := range []ledger.Event{{What: "task.failed", ID: "1"}, {What: "task.claimed", ID: "2"}, {What: "task.failed", ID: "2"}, {What: "approval.asked", ID: "77", Who: "ann"}} {
		seq, err := tm.Ledger.Event(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	for i, spec := range specs[1:] {
		if err := tm.Ledger.Set(ctx, SettingTold(spec), seqs[0]-1+int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	b := looptest.NewBus(t)
	n := NewNotifications(tm)
	b.StartService(n)
	b.Next()
	b.Until("all is told", func() bool { return !n.Busy() })
	for name, want := range map[string][]string{out: {"task 1 failed", "task 2 failed"}, out + "-2": {"task 2 failed"}, out + "-new": nil} {
		data, _ := os.ReadFile(name)
		if text := string(data); strings.Count(text, "\n") != len(want) {
			t.Errorf("%s: %s, want %q", name, text, want)
		}
		for _, w := range want {
			if !strings.Contains(string(data), w) {
				t.Errorf("%s lacks %s: %s", name, w, data)
			}
		}
	}
}
