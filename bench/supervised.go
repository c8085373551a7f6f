package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/team"
)

// supervised is a team with a supervisor process and agents of one backend.
type supervised struct {
	*world
	kind   string
	cmd    *exec.Cmd
	client *control.Client
	names  []string
}

// newSupervised makes the team; dir is its home below the benchmark's directory.
func newSupervised(ctx context.Context, e env, dir, kind string) (*supervised, error) {
	w, err := newWorld(ctx, e, dir, 0)
	if err != nil {
		return nil, err
	}
	s := &supervised{world: w, kind: kind, client: control.NewClient(w.layout.Socket())}
	_, err = s.begin(ctx)
	return s, err
}

// begin starts the supervisor and returns how long it took until it answered.
func (s *supervised) begin(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	cmd, err := s.process(ctx)
	if err != nil {
		return 0, err
	}
	s.cmd = cmd
	return time.Since(began), nil
}

// crash ends the supervisor with SIGKILL.
func (s *supervised) crash() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.client.Close()
	return err
}

// more brings up n further agents and returns how long that took.
func (s *supervised) more(ctx context.Context, n int, argv []string) (time.Duration, error) {
	first := len(s.names)
	for i := range n {
		s.names = append(s.names, fmt.Sprintf("a%d", first+i))
	}
	began := time.Now()
	err := atOnce(n, max(n, 1), func(i int) error {
		_, err := s.client.Spawn(ctx, team.SpawnRequest{
			Name: s.names[first+i], Exact: true,
			Spec: team.MemberSpec{Agent: "command", Command: argv, Backend: s.kind, Restart: team.RestartNever, WorktreeMode: "none", Cwd: s.layout.Dir},
		})
		return err
	})
	return time.Since(began), err
}

// shims are the holders of the agents.
func (s *supervised) shims() ([]int, error) {
	var out []int
	for _, n := range s.names {
		p, err := bundle.ReadProc(s.layout.Bundle(n), "")
		if err != nil {
			return nil, err
		}
		out = append(out, p.Shim.PID)
	}
	return out, nil
}

// loggers are the processes that write the logs of agents in tmux panes.
func (s *supervised) loggers() ([]int, error) {
	var out []int
	for _, n := range s.names {
		l, err := bundle.ReadLogger(s.layout.Bundle(n), "")
		if err != nil {
			return nil, err
		}
		out = append(out, l.Process.PID)
	}
	return out, nil
}

// end stops everything.
func (s *supervised) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	var err error
	if len(s.names) > 0 {
		_, err = s.client.StopMembers(ctx, team.StopRequest{Names: s.names, Force: true})
	}
	err = errors.Join(err, s.client.Quit(ctx, true))
	s.client.Close()
	return errors.Join(err, s.cmd.Wait())
}
