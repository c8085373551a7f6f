package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// dying listens on the team's socket like a supervisor that is killed once it has
// read a request, each of n times. The returned function tells the requests it read.
func dying(t *testing.T, l team.Layout, n int) func() []string {
	t.Helper()
	if err := PrivateDir(l.Runtime()); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", l.Socket())
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	var got []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = listener.Close() }()
		for range n {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				got = append(got, req.URL.Path)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return func() []string { _ = listener.Close(); <-done; return got }
}

// refused waits until nobody holds the socket: a process that another test starts has it
// from its fork to its exec, and a connection that it takes is broken then.
func refused(t *testing.T, l team.Layout) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(5 * time.Minute); ; <-tick.C {
		conn, err := net.Dial("unix", l.Socket())
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
		if time.Now().After(late) {
			t.Fatalf("the socket is still held: %v", err)
		}
	}
}

// reviver is a client as Dialer makes it for one that may start a supervisor.
func reviver(t *testing.T, l team.Layout) *Client {
	t.Helper()
	c := NewClient(l.Socket())
	c.revive = func(ctx context.Context) error { return startUp(ctx, l, []string{os.Args[0]}, FromPerson) }
	t.Cleanup(func() {
		_ = c.Quit(context.WithoutCancel(t.Context()), false)
		c.Close()
		waitGone(t, l)
	})
	return c
}

// A supervisor that is killed while it is asked is started again and asked, where
// that may be done twice.
func TestAskedAgainAfterAKill(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	asked := dying(t, l, 1)
	c := reviver(t, l)
	out, err := c.StopMembers(t.Context(), team.StopRequest{Force: true})
	if err != nil || len(out) != 0 {
		t.Fatalf("stop: %v, %v", out, err)
	}
	if got := asked(); len(got) != 1 || got[0] != "/v1/stop" {
		t.Errorf("the one that died was asked %v", got)
	}
	if st, err := c.Status(t.Context()); err != nil || st.PID == 0 || st.PID == os.Getpid() {
		t.Errorf("status: %+v, %v", st, err)
	}
}

// What may not be done twice is not asked again: that it is not known what became
// of it is said, with where to look. What has reached nobody is.
func TestNotDoneTwice(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	asked := dying(t, l, 2)
	c := reviver(t, l)
	_, err := c.Spawn(t.Context(), team.SpawnRequest{Name: "a"})
	if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != reasonGone || team.HintOf(err) == "" || !errors.Is(err, ledger.ErrWriterGone) {
		t.Errorf("spawn: %v (reason %q, hint %q)", err, team.ReasonOf(err), team.HintOf(err))
	}
	if got := asked(); len(got) != 1 || got[0] != "/v1/spawn" {
		t.Errorf("it was asked %v", got)
	}
	refused(t, l)
	// Now nobody listens, and the team's supervisor answers that it has no backend.
	_, err = c.Spawn(t.Context(), team.SpawnRequest{Name: "a", Spec: team.MemberSpec{Backend: "nosuch"}})
	if !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("spawn with nobody there: %v", err)
	}
}

// A stop whose answer was lost may have taken the member off the roster: that it is
// not there any more is not an answer.
func TestStoppedAndGone(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	dying(t, l, 1)
	c := reviver(t, l)
	_, err := c.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}, Remove: true})
	if !supervisor.IsStopped(err) {
		t.Errorf("err = %v", err)
	}
	_, err = c.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}, Remove: true})
	if !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("of one that answers: %v", err)
	}
}

// Where no other supervisor can be started, it stays said that the outcome is not known.
func TestNoneToAskAgain(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	asked := dying(t, l, 1)
	c := NewClient(l.Socket())
	defer c.Close()
	c.revive = func(context.Context) error {
		return team.Errorf(team.CodeUnavailable, "killed again").WithReason(reasonDied)
	}
	_, err := c.StopMembers(t.Context(), team.StopRequest{Force: true})
	if !supervisor.IsStopped(err) || !team.IsCode(err, team.CodeUnavailable) || !strings.Contains(err.Error(), "killed again") {
		t.Errorf("%v, %s", err, team.ReasonOf(err))
	}
	if got := asked(); len(got) != 1 {
		t.Errorf("asked %v", got)
	}
}

// While another process holds the locks, one start is tried, not one after another.
func TestOneStartWhileTheLocksAreHeld(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	count := filepath.Join(l.Dir, "starts")
	held, err := lockSupervisor(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(errorOf(team.Errorf(team.CodeConflict, "one runs").WithReason(team.ReasonSupervisorRunning)))
	if err != nil {
		t.Fatal(err)
	}
	script := `echo >>"$0"; if [ "$(wc -l <"$0")" = 1 ]; then echo "$1" >&3; else echo ok >&3; fi`
	done := make(chan error, 1)
	go func() {
		done <- startUp(t.Context(), l, []string{"sh", "-c", script, count, string(line)}, FromPerson)
	}()
	starts := func() int {
		b, _ := os.ReadFile(count)
		return strings.Count(string(b), "\n")
	}
	for starts() == 0 {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(300 * time.Millisecond) // in which a healthy starter does nothing
	if n := starts(); n != 1 {
		t.Errorf("%d starts while the locks are held", n)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || starts() != 2 {
		t.Errorf("%v after %d starts", err, starts())
	}
}
