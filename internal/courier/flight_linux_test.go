package courier

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/team"
)

// A starting program may discard what was typed too early. A text that it has read and does not
// show although it is at rest is typed again; otherwise the mail would wait for ever. A text that
// waits unread in its terminal is not typed again, however long it takes, and neither is one whose
// reader computes.
func TestWhatIsReadAndNotShownIsTypedAnew(t *testing.T) {
	t.Parallel()
	master, slave, err := openpty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	lines := *mode
	mode.Lflag &^= unix.ICANON | unix.ECHO
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "100000")
	cmd.Stdin = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	s := &couriertest.Screen{Slow: true}
	first, f, _ := typed(t, s, openTyping, adapter.WayTyping)
	first.Close()
	f.PID = cmd.Process.Pid
	ch, err := openTyping(t.Context(), f, s, couriertest.NewWatcher().Report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ch.Close)
	held := func(why string) {
		t.Helper()
		if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Held || !strings.Contains(out[0].Reason, why) {
			t.Fatalf("%+v, want held: %s", out, why)
		}
	}
	change := func(how func(*flight)) {
		t.Helper()
		typist := &ch.(*Typing).Typist
		fl := typist.flight()
		how(&fl)
		if !typist.keepFlight(fl) {
			t.Fatal("the note cannot be written")
		}
	}
	held("not seen to have arrived")
	held("may still have to read it") // too early to tell
	change(func(f *flight) { f.At = f.At.Add(-2 * time.Hour) })
	if _, err := master.WriteString("text of a"); err != nil {
		t.Fatal(err)
	}
	late := time.After(5 * time.Minute)
	for n, known := unread(f.PID); n != len("text of a"); n, known = unread(f.PID) { // the kernel delivers it a moment later
		select {
		case <-late:
			t.Fatalf("%d bytes are unread, known %v", n, known)
		case <-time.After(time.Millisecond):
		}
	}
	held("may still have to read it")
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &lines); err != nil {
		t.Fatal(err)
	}
	if n, known := unread(f.PID); known {
		t.Fatalf("%d bytes are unread of what is no line yet", n)
	}
	held("may still have to read it")
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	if _, err := slave.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	change(func(f *flight) { f.At, f.Rest, f.Used = time.Now(), time.Time{}, 0 })
	held("may still have to read it") // at rest since now
	change(func(f *flight) { f.Rest, f.Used = f.Rest.Add(-time.Hour), -time.Hour })
	held("may still have to read it") // it has computed for an hour
	change(func(f *flight) { f.Rest = f.Rest.Add(-lostAfter) })
	s.With(func() { s.Slow, s.Unread = false, "" })
	if out := ch.Deliver(t.Context(), couriertest.Mail("a")); out[0].State != team.Accepted || s.Lines() != "text of a" {
		t.Errorf("%+v, sent %q", out, s.Lines())
	}
}
