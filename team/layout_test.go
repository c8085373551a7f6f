package team

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFindHome(t *testing.T) {
	t.Setenv(EnvHome, "/x/../y")
	if h, err := FindHome(); err != nil || h.Dir != "/y" {
		t.Errorf("%+v, %v", h, err)
	}
	t.Setenv(EnvHome, "rel")
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if h, err := FindHome(); err != nil || h.Dir != filepath.Join(wd, "rel") {
		t.Errorf("%+v, %v", h, err)
	}
	t.Setenv(EnvHome, "")
	t.Setenv("HOME", "/home/u")
	if h, err := FindHome(); err != nil || h.Dir != "/home/u/.teamctl" {
		t.Errorf("%+v, %v", h, err)
	}
	t.Setenv("HOME", "")
	if _, err := FindHome(); !IsCode(err, CodeInvalid) || HintOf(err) == "" {
		t.Errorf("without HOME: %v", err)
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	h := Home{Dir: "/h"}
	l := h.Team("eps")
	b := l.Bundle("w")
	for got, want := range map[string]string{
		h.Registry():       "/h/teams.json",
		h.TeamsDir():       "/h/teams",
		l.Dir:              "/h/teams/eps",
		l.Config():         "/h/teams/eps/config.json",
		l.Ledger():         "/h/teams/eps/ledger.db",
		l.Inboxes():        "/h/teams/eps/inboxes",
		l.Locks():          "/h/teams/eps/locks",
		l.Members():        "/h/teams/eps/members",
		l.Worktrees():      "/h/teams/eps/worktrees",
		l.SupervisorLock(): "/h/teams/eps/supervisor.lock",
		l.SupervisorPID():  "/h/teams/eps/supervisor.pid",
		l.SupervisorLog():  "/h/teams/eps/supervisor.log",
		string(b):          "/h/teams/eps/members/w",
		b.Launch():         "/h/teams/eps/members/w/launch.json",
		b.Proc():           "/h/teams/eps/members/w/proc.json",
		b.Pane():           "/h/teams/eps/members/w/pane.json",
		b.Exit():           "/h/teams/eps/members/w/exit.json",
		b.RunLock():        "/h/teams/eps/members/w/run.lock",
		b.StartLock():      "/h/teams/eps/members/w/start.lock",
		b.Log():            "/h/teams/eps/members/w/output.log",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A mailbox's lock is <agent>.guard in the same directory, whatever the agent's name.
func TestTeamLocksAreNoMailboxLocks(t *testing.T) {
	t.Parallel()
	l := Home{Dir: "/h"}.Team("eps")
	for _, path := range []string{l.ConfigLock(), l.StartingLock(), l.LedgerLock()} {
		if filepath.Dir(path) != l.Locks() {
			t.Errorf("%s is elsewhere", path)
		}
		agent, guard := strings.CutSuffix(filepath.Base(path), ".guard")
		if name, err := InboxName(agent); guard && err == nil {
			t.Errorf("%s is the mailbox lock of %s", path, name)
		}
	}
}

func TestSocketsAreShortAndApart(t *testing.T) {
	t.Setenv(EnvRuntime, "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got := RuntimeRoot(); !strings.HasPrefix(got, "/tmp/teamctl-") {
		t.Errorf("root is %s", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	if got := RuntimeRoot(); got != "/run/user/1000/teamctl" {
		t.Errorf("root is %s", got)
	}
	long := Home{Dir: "/" + strings.Repeat("deep/", 60)}
	seen := map[string]bool{}
	for _, l := range []Layout{long.Team("a"), long.Team("b"), {Dir: "/other"}} {
		for _, s := range []string{l.Socket(), l.NotifySocket(), l.TmuxSocket()} {
			if len(s) > 103 { // macOS; Linux has 107
				t.Errorf("%s has %d bytes", s, len(s))
			}
			if seen[s] || filepath.Dir(s) != l.Runtime() {
				t.Errorf("%s is used twice or elsewhere", s)
			}
			seen[s] = true
		}
	}
	t.Setenv(EnvRuntime, "/r")
	if got := RuntimeRoot(); got != "/r" {
		t.Errorf("root is %s", got)
	}
}

func TestParseSupervisorPID(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]struct {
		pid     int
		adopted bool
		ok      bool
	}{
		"12\n":             {12, false, true},
		"12\nadopted\n":    {12, true, true},
		"12\nad":           {12, false, true},
		"12":               {12, false, true},
		"":                 {},
		"x\nadopted\n":     {},
		"\nadopted\n":      {},
		"12\nadopted\nx\n": {12, false, true},
	} {
		pid, adopted, err := ParseSupervisorPID([]byte(content))
		if (err == nil) != want.ok || want.ok && (pid != want.pid || adopted != want.adopted) {
			t.Errorf("%q: %d, %v, %v", content, pid, adopted, err)
		}
	}
}

func TestParseSupervisorEnd(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123)
	for content, want := range map[string]time.Time{
		"":                                  {},
		"12\n":                              {},
		"12\nadopted\n":                     {},
		"12\nadopted\n" + SupervisorEnd(at): at,
		"12\nadopted\n" + SupervisorEnd(at) + SupervisorEnd(at.Add(time.Second)): at,
		"12\nadopted\nended x\n" + SupervisorEnd(at):                             at,
		"12\nadopted\nended 17000":                                               {}, // it is being written
	} {
		if got := ParseSupervisorEnd([]byte(content)); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", content, got, want)
		}
		if pid, _, err := ParseSupervisorPID([]byte(content)); content != "" && (err != nil || pid != 12) {
			t.Errorf("%q: pid %d, %v", content, pid, err)
		}
	}
}
