package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// mate is the one teammate of the team that is measured.
const (
	mate     = "mate"
	lookEach = 20 * time.Millisecond
)

// poster gets a text into the agent.
type poster func(ctx context.Context, text string) error

// latencyRig is one CLI as a teammate, with its model.
type latencyRig struct {
	kind  latencyKind
	exe   string
	home  *agentlab.Home
	model *fakemodel.Server
	team  *tool.Team
	pane  team.Pane
	tree  string // its worktree
	way   string
	pause time.Duration
	texts int
}

func newLatencyRig(ctx context.Context, e env, k latencyKind, c agentlab.Client) (_ *latencyRig, err error) {
	r := &latencyRig{kind: k}
	if r.exe, err = filepath.Abs(e.teamctl); err != nil {
		return nil, err
	}
	if r.model, err = fakemodel.Start("", nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.home, err = agentlab.NewHome(ctx, k.base, k.cache, r.model.URL, []agentlab.Client{c}); err != nil {
		return nil, err
	}
	// The place of the sockets is found by the environment: we are one of the team's processes.
	if err := os.Setenv(team.EnvRuntime, r.home.Sockets); err != nil {
		return nil, err
	}
	hello := r.token()
	for _, args := range [][]string{
		{"create", "b", "--repo", r.home.Repo}, {"spawn", mate, "--team", "b", "--agent", c.Name, "--session", "--prompt", "@@say " + hello},
	} {
		if _, err := r.home.Run(ctx, append([]string{r.exe}, args...)...); err != nil {
			return nil, err
		}
	}
	if _, err := r.asked(ctx, hello); err != nil {
		return nil, fmt.Errorf("the prompt: %w", err)
	}
	home := team.Home{Dir: r.home.Teams}
	if r.team, err = (&tool.Env{Home: home, Dial: control.Dialer([]string{r.exe}), Writer: control.Writer}).Open(ctx, "b"); err != nil {
		return nil, err
	}
	m, err := r.team.Member(ctx, mate)
	if err != nil {
		return nil, err
	}
	r.tree = m.Worktree
	link, err := courier.ReadLink(home.Team("b").Bundle(mate), m.Generation)
	if err != nil {
		return nil, err
	}
	r.way = string(link.Ways[0])
	if k.paused {
		rules, err := courier.LoadRules(home, c.Name)
		if err != nil {
			return nil, err
		}
		r.pause = rules.Enter.Wait
	}
	r.pane, err = r.team.Pane(ctx, mate)
	return r, err
}

func (r *latencyRig) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if r.team != nil {
		err = r.team.Close()
	}
	if r.home != nil {
		_, _ = r.home.Run(ctx, r.exe, "delete", "b", "--force") // what it cannot end is ended here
		err = errors.Join(err, r.home.Reap(), r.home.Remove())
	}
	return errors.Join(err, r.model.Close())
}

// fresh begins a new run of the team before the messages of one reach their cap.
func (r *latencyRig) fresh(ctx context.Context, round int) error {
	if round%20 > 0 {
		return nil
	}
	_, err := r.team.Ledger.StartRun(ctx)
	return err
}

// token is a word that nothing else contains.
func (r *latencyRig) token() string {
	r.texts++
	return fmt.Sprintf("latency-%d-", r.texts)
}

// mail is our way.
func (r *latencyRig) mail(ctx context.Context, text string) error {
	_, err := r.team.Send(ctx, tool.Person(), tool.SendIn{Type: "message", Recipient: mate, Content: text, Summary: "one"})
	return err
}

// typed is the floor: a paste and an Enter, blindly.
func (r *latencyRig) typed(ctx context.Context, text string) error {
	argv := []string{"-S", r.pane.Socket, "set-buffer", "-b", "bench", "--", text, ";", "paste-buffer", "-p", "-d", "-b", "bench", "-t", r.pane.PaneID}
	enter := []string{"send-keys", "-t", r.pane.PaneID, "Enter"}
	if r.pause == 0 {
		return quiet(ctx, noTmux(os.Environ()), "tmux", append(append(argv, ";"), enter...)...)
	}
	if err := quiet(ctx, noTmux(os.Environ()), "tmux", argv...); err != nil {
		return err
	}
	if err := pause.For(ctx, r.pause); err != nil {
		return err
	}
	return quiet(ctx, noTmux(os.Environ()), "tmux", append([]string{"-S", r.pane.Socket}, enter...)...)
}

// whileIdle is the time from before the post to the request that has the text.
func (r *latencyRig) whileIdle(ctx context.Context, post poster) (time.Duration, error) {
	if err := r.rest(ctx); err != nil {
		return 0, err
	}
	token := r.token()
	began := time.Now()
	if err := post(ctx, "@@say "+token); err != nil {
		return 0, err
	}
	q, err := r.asked(ctx, token)
	return q.At.Sub(began), err
}

// inTurn posts while a tool runs, and returns what passed from its end to the request
// that has the text, and whether the turn had ended before. A nil post posts nothing.
func (r *latencyRig) inTurn(ctx context.Context, post poster) (late time.Duration, end bool, err error) {
	if err := r.rest(ctx); err != nil {
		return 0, false, err
	}
	then, mid := r.token(), r.token()
	gate := filepath.Join(r.tree, then+"gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		return 0, false, fmt.Errorf("make %s: %w", gate, err)
	}
	defer func() { err = errors.Join(err, os.Remove(gate)) }()
	// The tool runs until the other end of the pipe is closed.
	if err := r.mail(ctx, "@@shell cat "+filepath.Base(gate)+"\n@@say "+then); err != nil {
		return 0, false, err
	}
	call, err := r.wait(ctx, "the turn", func(q fakemodel.Request) bool {
		return strings.Contains(q.New, then) && strings.HasPrefix(q.Answer, "call ")
	})
	if err != nil {
		return 0, false, err
	}
	tool, err := r.opened(ctx, gate)
	if err != nil {
		return 0, false, err
	}
	if post != nil {
		err = post(ctx, "@@say "+mid)
	}
	if err == nil {
		err = pause.For(ctx, r.kind.busy)
	}
	ended := time.Now()
	if err := errors.Join(err, tool.Close()); err != nil {
		return 0, false, err
	}
	q, err := r.wait(ctx, "the request after the tool", func(q fakemodel.Request) bool {
		return q.Seq > call.Seq && (post == nil || strings.Contains(q.New, mid))
	})
	if err != nil {
		return 0, false, err
	}
	for _, before := range r.model.Requests()[:q.Seq-1] {
		end = end || before.Answer == "say "+then
	}
	return q.At.Sub(ended), end, nil
}

// rest waits until the agent is idle and stays so.
func (r *latencyRig) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.kind.limit)
	defer cancel()
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for since := (time.Time{}); ; {
		m, err := r.team.Member(ctx, mate)
		if err != nil {
			return err
		}
		switch {
		case m.Activity != team.Idle:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= r.kind.settled:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not at rest within %s: it is %s, %s", r.kind.limit, m.Observed, m.Activity)
		}
	}
}

// opened waits until a program reads from the pipe, and returns the end to write to.
func (r *latencyRig) opened(ctx context.Context, gate string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, r.kind.limit)
	defer cancel()
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for {
		f, err := os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil || !errors.Is(err, syscall.ENXIO) { // ENXIO: nobody reads yet
			return f, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the tool does not run within %s", r.kind.limit)
		}
	}
}

// asked waits for the request in which a text has come in.
func (r *latencyRig) asked(ctx context.Context, token string) (fakemodel.Request, error) {
	return r.wait(ctx, token, func(q fakemodel.Request) bool { return strings.Contains(q.New, token) })
}

func (r *latencyRig) wait(ctx context.Context, what string, ok func(fakemodel.Request) bool) (fakemodel.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, r.kind.limit)
	defer cancel()
	q, err := r.model.Wait(ctx, func(q fakemodel.Request) bool { return !q.Side && ok(q) })
	if err != nil {
		return q, fmt.Errorf("%s did not reach the model: %w", what, err)
	}
	return q, nil
}
