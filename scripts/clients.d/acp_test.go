package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestACP checks agents that speak the Agent Client Protocol. A turn that fails, is refused or is
// interrupted is reported to the lead as such. Usage is counted. At a usage limit the agent is
// limited: its mail is held, also across a kill of the supervisor, and arrives once when the limit
// ends.
func TestACP(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	ctx := context.WithoutCancel(t.Context())
	dir := t.TempDir()
	s := &standIns{T: t, ctx: ctx}
	var err error
	if s.w, err = newWorld(ctx, options{exe: build(t, dir), cache: filepath.Join(dir, "cache"), limit: 5 * time.Minute}, nil); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.w.close(false); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv(team.EnvRuntime, s.w.Sockets) // we are one of the team's processes
	self, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, fakecli.ACPAgent)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	s.must("spawn", "ann", "--agent", "acp", "--prompt", "@@shell echo hi\n@@say here", "--", program)
	env := tool.Env{Home: team.Home{Dir: filepath.Join(s.w.Dir, "t")}, Dial: control.Dialer([]string{s.w.exe}), Writer: control.Writer}
	if s.tm, err = env.Open(ctx, "demo"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.tm.Close(); err != nil {
			t.Error(err)
		}
	}()
	used := func(least int64) {
		t.Helper()
		s.until("counted", func() (bool, error) {
			var u struct{ Members []tool.MemberUsage }
			if err := json.Unmarshal([]byte(s.must("usage", "--json")), &u); err != nil {
				return false, err
			}
			for _, m := range u.Members {
				if m.Name == "ann" && m.Counted && m.InputTokens >= least && m.OutputTokens > 0 {
					return true, nil
				}
			}
			return false, nil
		})
	}
	s.arrives("@@say here")
	used(2)

	s.failsAndIsInterrupted("ann")

	s.tell("ann", "@@shell echo more\n@@fail 429 You've hit your usage limit. Try again in 3 days.")
	s.until("limited", func() (bool, error) {
		m, err := s.w.member(ctx, "ann")
		return m.Activity == "limited" && s.events(team.EventUsageLimited, "acp") == 1, err
	})
	_, err = s.w.teamctl(ctx, "spawn", "bob", "--agent", "acp", "--", program)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 6 || !strings.Contains(err.Error(), "teamctl usage resume acp") {
		t.Errorf("spawned another: %v", err)
	}
	id := s.tell("ann", "held-for-ann")
	s.is(team.Held, id)
	killSupervisor(t, s.w)()
	if n := s.w.model.Arrivals("held-for-ann"); n != 0 || s.state(id).State != team.Held {
		t.Errorf("it is %s, and came %d times", s.state(id).State, n)
	}
	s.must("usage", "resume", "acp")
	s.must("ps") // starts the next supervisor, which tells the agent to continue
	s.arrives("held-for-ann")
	s.arrives("The usage limit that stopped you is over")
	s.is(team.Accepted, id)
	if n := s.w.model.Arrivals("held-for-ann"); n != 1 {
		t.Errorf("it came %d times", n)
	}
	s.until("idle", func() (bool, error) {
		m, err := s.w.member(ctx, "ann")
		return m.Activity == "idle", err
	})
	used(3)
}

// failsAndIsInterrupted has one member's turns end in each way other than by completion.
func (s *standIns) failsAndIsInterrupted(name string) {
	s.Helper()
	told := func(reason, words string) {
		s.Helper()
		s.until("told as "+reason, func() (bool, error) {
			all, err := s.w.notices(s.ctx, name)
			if err != nil || len(all) == 0 {
				return false, err
			}
			if n := all[len(all)-1]; n.IdleReason != reason || !strings.Contains(n.FailureReason, words) {
				return false, fmt.Errorf("told as %+v", all)
			}
			return true, nil
		})
	}
	s.tell(name, "@@fail 400 there is no such model")
	told("failed", "there is no such model")
	s.until("shown as failed", func() (bool, error) {
		out := s.must("ps")
		if !strings.Contains(out, "its turn failed") {
			return false, errors.New(out)
		}
		return true, nil
	})
	s.tell(name, "@@fail 400 this is what we refuse")
	told("failed", "the agent refused to go on")

	s.tell(name, "@@shell sleep 600\n@@say never-"+name)
	if _, err := s.w.request(s.ctx, "sleep 600", func(r fakemodelRequest) bool {
		return strings.Contains(r.New, "never-"+name) && strings.HasPrefix(r.Answer, "call ")
	}); err != nil {
		s.Fatal(err)
	}
	s.must("interrupt", name)
	told("interrupted", "")
	if err := s.w.idle(s.ctx, name); err != nil {
		s.Fatal(err)
	}
	s.until("without its command", func() (bool, error) {
		all := s.w.processes()
		for _, argv := range all {
			if strings.Contains(argv, "sleep 600") {
				return false, fmt.Errorf("%v", all)
			}
		}
		return true, nil
	})
	id := s.tell(name, "@@say after-"+name)
	if _, err := s.w.answered(s.ctx, "after-"+name); err != nil {
		s.Fatal(err)
	}
	s.is(team.Accepted, id)
}
