package bundle

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The datagram of an agent that does not use this package.
func TestReadyFromAnAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "n")
	n, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := n.Subscribe("", "")
	other, _ := n.Subscribe("b", "")
	c, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, junk := range []string{"", "junk", `{"event":1}`, `{}`, strings.Repeat("x", 9000)} {
		_, _ = c.Write([]byte(junk))
	}
	if err := json.NewEncoder(c).Encode(map[string]string{"agent": "a", "generation": "g", "event": "ready"}); err != nil {
		t.Fatal(err)
	}
	if e := <-all; e.Agent+" "+e.Generation+" "+e.Event != strings.Join([]string{"a", "g", EventReady}, " ") {
		t.Errorf("event = %+v", e)
	}
	_ = c.Close()
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", fi, err)
	}
	// A subscriber that does not read loses the oldest events, and delays no
	// sender.
	for range 200 {
		if err := Notify(path, "a", "g", EventUp); err != nil {
			t.Fatal(err)
		}
	}
	if err := Notify(path, "b", "g", EventExited); err != nil {
		t.Fatal(err)
	}
	if e := <-other; e.Event != EventExited {
		t.Errorf("event = %+v", e)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	for range all { // closed at the end
	}
	if _, ok := <-other; ok {
		t.Error("still open")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
	if err := Notify(path, "a", "g", EventUp); err == nil {
		t.Error("notifying nobody succeeded")
	}
}

func TestSocketPathTooLong(t *testing.T) {
	t.Parallel()
	if _, err := Listen("/tmp/" + strings.Repeat("x", 120)); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("listen: %v; want invalid", err)
	}
}

// A deleted socket is recreated, also for existing subscribers.
func TestDeletedNotifySocketComesBack(t *testing.T) {
	t.Parallel()
	n, err := Listen(filepath.Join(t.TempDir(), "n"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	events, cancel := n.Subscribe("a", "")
	defer cancel()
	if renewed, err := n.Look(); renewed || err != nil {
		t.Errorf("looked at a socket that is there: %v, %v", renewed, err)
	}
	for range 3 {
		if err := os.Remove(n.Path()); err != nil {
			t.Fatal(err)
		}
		if err := Notify(n.Path(), "a", "g", EventUp); err == nil {
			t.Error("a sender was not told")
		}
		if renewed, err := n.Look(); !renewed || err != nil {
			t.Fatalf("look: %v, %v", renewed, err)
		}
		if fi, err := os.Stat(n.Path()); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("the new socket: %v, %v", fi, err)
		}
		if err := Notify(n.Path(), "a", "g", EventReady); err != nil {
			t.Fatal(err)
		}
		if e := <-events; e.Event != EventReady {
			t.Errorf("event %+v", e)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if renewed, err := n.Look(); renewed || err != nil {
		t.Errorf("after close: %v, %v", renewed, err)
	}
	if _, err := os.Lstat(n.Path()); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}
