package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestSpawnThroughTheSocket checks that a client of the supervisor's socket can pass no member,
// worktree or directory that the command line would refuse, and that the attempt has no effect.
func TestSpawnThroughTheSocket(t *testing.T) {
	r := newFaultRig(t)
	r.agent("ann", "never", "fakeagent", "hold")
	r.state("ann", team.Running)
	sockets, err := filepath.Glob(filepath.Join(r.dir, "r", "*", "s"))
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", sockets[0])
	}}}
	spawn := func(body string) (int, string) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://supervisor/v1/spawn", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	member := func(name, more string) string {
		return `{"name":"` + name + `","spec":{"agent":"command","command":["fakeagent","hold"],"worktreeMode":"none","cwd":"` + r.dir + `"` + more + `}}`
	}
	before := map[string]string{}
	for _, dir := range []string{r.dir, r.layout.Dir, r.layout.Members(), r.layout.Worktrees(), r.layout.Inboxes()} {
		before[dir] = entries(dir)
	}
	for _, body := range []string{
		member("", ""), member("../x", ""), member("../../../repo", ""), member("/tmp/x", ""), member("a/b", ""), member("..", ""), member("X y", ""),
		member("supervisor", ""), member("person", ""), member("system", ""), member("all", ""), member(team.LeadName, ""),
		member("x", `,"worktreeMode":"../x"`), member("x", `,"worktreeMode":"`+r.dir+`/nowhere"`), member("x", `,"worktreeMode":"`+r.dir+`/repo/../repo"`),
		member("x", `,"cwd":"relative"`), member("x", `,"cwd":"`+r.dir+`/nowhere"`), member("x", `,"env":{"A=B":"c"}`), member("x", `,"restart":"sometimes"`),
		`{"name":"x","role":"boss","spec":{"agent":"command","command":["fakeagent","hold"],"worktreeMode":"none"}}`,
	} {
		if status, answer := spawn(body); status != http.StatusBadRequest || !strings.Contains(answer, `"invalid"`) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	for dir, was := range before {
		if is := entries(dir); is != was {
			t.Errorf("in %s: %s, then %s", dir, was, is)
		}
	}
	if len(r.members()) != 1 {
		t.Errorf("%+v", r.members())
	}
	if status, answer := spawn(member("x", "")); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
}

// entries returns the names in a directory, without those of locks, which may be held for a
// moment.
func entries(dir string) string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
