package control

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// mute asks a supervisor that does not answer in every way there is: each has to end
// with its pid and with what to do, and none may write past it.
func mute(t *testing.T, l team.Layout, c *Client, pid int, why string) {
	t.Helper()
	led := openLedger(t, l, false)
	for what, ask := range map[string]func() error{
		"dial": func() error { _, err := Dialer([]string{os.Args[0]})(t.Context(), l, true); return err },
		"request": func() error {
			_, err := c.Status(t.Context())
			return err
		},
		"order": func() error { _, err := c.StopMembers(t.Context(), team.StopRequest{}); return err },
		"operation": func() error {
			_, err := led.Event(t.Context(), ledger.Event{What: "mute"})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			err := ask()
			if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != team.ReasonHung || errors.Is(err, ledger.ErrWriterGone) {
				t.Fatalf("%v (reason %q)", err, team.ReasonOf(err))
			}
			if !strings.Contains(err.Error(), strconv.Itoa(pid)) || !strings.Contains(err.Error(), why) || !strings.Contains(team.HintOf(err), strconv.Itoa(pid)) {
				t.Errorf("%v; hint: %s", err, team.HintOf(err))
			}
		})
	}
}

// halt stops a process and returns when all of it is.
func halt(t *testing.T, pid int) (goOn func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for activity(pid) != doingStopped {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it is not stopped")
		}
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
}

// A supervisor that is stopped keeps nobody: not who connects, and not who has waited
// for its answer already.
func TestStoppedSupervisor(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	goOn := halt(t, st.PID)
	defer goOn()
	short, cancel := context.WithCancel(t.Context())
	pinged, ended := make(chan error, 1), make(chan error, 1)
	go func() { pinged <- Ping(t.Context(), l) }()
	go func() { ended <- Ping(short, l) }()
	mute(t, l, c, st.PID, "it is stopped")
	if cancel(); !errors.Is(<-ended, context.Canceled) || len(pinged) > 0 {
		t.Error("a ping has ended before the supervisor went on")
	}
	goOn()
	if err := <-pinged; err != nil {
		t.Errorf("the ping that was open meanwhile: %v", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("after SIGCONT: %v", err)
	}
}

// So does one that has no file descriptor left to accept with.
func TestSupervisorWithoutDescriptors(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Close() // what is connected is answered
	used, err := os.ReadDir("/proc/" + strconv.Itoa(st.PID) + "/fd")
	if err != nil {
		t.Skip("no process table to see descriptors in")
	}
	var before unix.Rlimit
	if err := unix.Prlimit(st.PID, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 1 << 10}, &before); err != nil {
		t.Skipf("limit the descriptors of another process: %v (%d are used)", err, len(used))
	}
	mute(t, l, c, st.PID, "no answer")
	if err := unix.Prlimit(st.PID, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 10}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("with descriptors again: %v", err)
	}
}

// Time alone does not decide: a process that wants to run is waited for, and one that
// is stopped for a moment too.
func TestSilence(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name  string
		doing func(i int) doing
		from  time.Duration // to where it is given up, about
		why   string
		again bool
	}{
		{name: "sleeps", doing: func(int) doing { return doingNothing }, from: silentFor, why: "no answer"},
		{name: "sleeps again", doing: func(int) doing { return doingNothing }, from: againFor, why: "no answer", again: true},
		{name: "stopped", doing: func(int) doing { return doingStopped }, from: stoppedFor, why: "stopped"},
		{name: "busy", doing: func(int) doing { return doingWork }, from: busyFor, why: "busy"},
		{name: "starved", doing: func(i int) doing { return []doing{doingWork, doingWork, doingNothing}[i%3] }, from: 2 * silentFor, why: "no answer"},
		{name: "debugged", doing: func(i int) doing { return []doing{doingStopped, doingWork}[i%2] }, from: busyFor, why: "busy"},
	} {
		s := silence{last: now, again: c.again}
		for i := 1; ; i++ {
			at := now.Add(time.Duration(i) * aliveLooks)
			why := s.look(c.doing(i), at)
			if why == "" && i < 10000 {
				continue
			}
			took := at.Sub(now)
			if !strings.Contains(why, c.why) || took < c.from || took > 3*c.from {
				t.Errorf("%s: %q after %s", c.name, why, took)
			}
			break
		}
	}
	// A process that could not run itself has observed nothing.
	s := silence{last: now}
	if why := s.look(doingNothing, now.Add(time.Hour)); why != "" {
		t.Errorf("after an hour without the processor: %q", why)
	}
}

// A request that stays open pings less and less often, and never stops: a screen that is open all day
// wakes nobody for it in most of any ten seconds, and still notices a supervisor that is stopped.
func TestOpenRequestPingsSeldom(t *testing.T) {
	t.Parallel()
	var pings int
	for taken := aliveAfter; taken < time.Hour; pings++ {
		pause := nextPing(taken)
		if pause < aliveEvery || pause > time.Minute || pause > max(aliveEvery, taken) {
			t.Fatalf("after %s it pings in %s", taken, pause)
		}
		taken += pause
	}
	if pings > 70 {
		t.Errorf("%d pings in an hour", pings)
	}
}

// A claim that lies in the socket of a stopped supervisor, and is tried again in the same
// context, is one claim: the supervisor carries it out once it goes on.
func TestClaimAtAStoppedSupervisor(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	st, err := dial(t, l).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	led := openLedger(t, l, false)
	if _, err := led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "x"}, {Subject: "y"}}, "lead"); err != nil {
		t.Fatal(err)
	}
	goOn := halt(t, st.PID)
	defer goOn()
	ctx, in := ledger.Repeated(t.Context()), ledger.ClaimIn{Owner: "ann"}
	for range 2 {
		if task, err := led.Claim(ctx, in); team.ReasonOf(err) != team.ReasonHung {
			t.Fatalf("%+v, %v", task, err)
		}
	}
	goOn()
	held := func() (ids []string) {
		ts, err := led.Tasks(t.Context(), ledger.TaskFilter{Owner: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ts {
			ids = append(ids, x.ID)
		}
		return ids
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(5 * time.Minute)
	for len(held()) == 0 {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the claim in the socket is not carried out")
		}
	}
	task, err := led.Claim(ctx, in)
	if err != nil || task == nil || task.ID != "1" || task.Attempt != 1 {
		t.Errorf("%+v, %v", task, err)
	}
	if ids := held(); len(ids) != 1 {
		t.Errorf("it holds %v", ids)
	}
}
