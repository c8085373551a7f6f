package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// tried is one thing that an agent was seen to do, or not.
type tried struct {
	Check  string `json:"check"`
	Status string `json:"status"` // yes, no, not tried
	Detail string `json:"detail,omitempty"`
	// Screen is the end of what it showed when the check failed.
	Screen []string `json:"screen,omitempty"`
}

// Results of a check.
const (
	triedYes = "yes"
	triedNo  = "no"
	triedNot = "not tried"
)

// notTried is the reason why a check was skipped without being a failure.
type notTried string

func (n notTried) Error() string { return string(n) }

// trial describes a test of an agent.
type trial struct {
	agent   string
	command []string
	backend string
	dir     string
	timeout time.Duration
	prompt  string
	mail    string
	busy    string
	offline bool
}

// Default texts of the conversation.
const (
	tryPrompt = "This is a test of the connection. Answer with the word ready, and do nothing else."
	tryMail   = "This is a test of the mail. Answer with the word received, and do nothing else."
	tryBusy   = "This is a test. Write the numbers from 1 to 2000 in words, one on each line, and do nothing else."
)

func newAgentsTest(a *app) *cobra.Command {
	t := trial{}
	cmd := &cobra.Command{
		Use:   "test NAME [-- COMMAND ARG...]",
		Short: "Test a kind of agent in a temporary team",
		Long: `Start one agent in a team that exists for the test alone, with a home directory, a
runtime directory and a tmux server of its own, and show what works: whether it
starts, is seen to be ready, takes a prompt and mail and by which way, can be
interrupted, and stops when it is asked. Nothing is left of it. The agent itself is
the one that you use, with your login: three short prompts go to its model, none
with --offline, and one that is empty is left out. It works in an empty directory, or
in the one of --dir, for agents that ask whether a directory is trusted: such a
question is yours to answer. The exit status is 7 if a check failed.`,
		Example: "  teamctl agents test claude\n  teamctl agents test mine --dir ~/project --json\n  teamctl agents test generic -- aider --no-git",
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			if d := cmd.ArgsLenAtDash(); d >= 0 {
				n = d
			}
			return takes(1, 1, "the name of a kind of agent")(cmd, args[:n])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t.agent, t.command = args[0], args[1:]
			if err := a.knownAgent(t.agent); err != nil {
				return err
			}
			if t.timeout <= 0 {
				return usage(cmd, "--timeout must be positive")
			}
			return a.tryAgent(cmd.Context(), t)
		},
		ValidArgsFunction: first(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.agentNames(), noFiles
		}),
	}
	f := cmd.Flags()
	f.StringVar(&t.backend, "backend", "auto", "where it runs: auto, tmux, pty")
	f.StringVar(&t.dir, "dir", "", "directory that it works in (default an empty one)")
	f.DurationVar(&t.timeout, "timeout", 2*time.Minute, "maximum time to wait for each step")
	f.BoolVar(&t.offline, "offline", false, "start and stop it only: no prompt goes to its model")
	f.StringVar(&t.prompt, "prompt", tryPrompt, "first prompt")
	f.StringVar(&t.mail, "mail", tryMail, "message that is sent to it when it is idle")
	f.StringVar(&t.busy, "busy", tryBusy, "message that keeps it at work until it is interrupted")
	return cmd
}

func (a *app) tryAgent(ctx context.Context, t trial) (err error) {
	s, err := newSandbox(ctx, t.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	list, err := s.try(ctx, t, func(r tried) {
		if !a.out.json {
			a.showTried(r)
		}
	})
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range list {
		if r.Status == triedNo {
			failed++
		}
	}
	if a.out.value(map[string]any{"agent": t.agent, "checks": list, "ok": failed == 0}) {
		if failed > 0 {
			return errSaid
		}
		return nil
	}
	if failed > 0 {
		return team.Errorf(team.CodeUnavailable, "%s: %d of %d checks failed", t.agent, failed, len(list)).WithReason(team.ReasonChecksFailed).
			WithHint("teamctl agents show " + t.agent + " says what it is to do, teamctl agents --help what stands in a file of your own")
	}
	return nil
}

func (a *app) showTried(r tried) {
	mark := r.Status
	switch r.Status {
	case triedYes:
		mark = a.out.style.Green("yes      ")
	case triedNo:
		mark = a.out.style.Red("no       ")
	}
	a.out.line("%s  %s  %s", mark, view.Pad(r.Check, 20), view.Clean(r.Detail))
	for _, l := range r.Screen {
		a.out.line("           | %s", l)
	}
}

// try runs the checks in order. It skips those that depend on a failed one.
func (s *sandbox) try(ctx context.Context, t trial, show func(tried)) ([]tried, error) {
	var list []tried
	check := func(name, skip string, f func() (string, error)) bool {
		if ctx.Err() != nil {
			return false
		}
		r := tried{Check: name, Status: triedNot, Detail: skip}
		if skip == "" {
			detail, err := f()
			var not notTried
			switch {
			case ctx.Err() != nil:
				return false
			case errors.As(err, &not):
				r.Detail = not.Error()
			case err == nil:
				r.Status, r.Detail = triedYes, detail
			default:
				r.Status, r.Detail, r.Screen = triedNo, err.Error(), s.shows(ctx)
			}
		}
		show(r)
		list = append(list, r)
		return r.Status == triedYes
	}
	// why a check is not made, "" if it is
	unless := func(good bool, why, text string) string {
		switch {
		case t.offline:
			return "nothing goes to its model"
		case text == "":
			return "there is no text for it"
		case !good:
			return why
		}
		return ""
	}
	started := check("starts", "", func() (string, error) { return s.starts(ctx, t) })
	skip := ""
	if !started {
		skip = "it did not start"
	}
	ready := check("is seen to be ready", skip, func() (string, error) { return s.ready(ctx, t) })
	// A prompt that did not arrive leaves an agent that may take mail.
	check("takes a prompt", unless(ready, "it is not ready", t.prompt), func() (string, error) { return s.prompted(ctx, t) })
	idle := check("is seen to be idle", unless(ready, "it is not ready", "-"), func() (string, error) { return s.becomes(ctx, t, team.Idle) })
	check("takes mail", unless(idle, "it is not idle", t.mail), func() (string, error) { return s.mailed(ctx, t) })
	check("is interrupted", unless(idle, "it is not idle", t.busy), func() (string, error) { return s.interrupted(ctx, t) })
	if started && !s.lives() {
		skip = "it has exited"
	}
	check("stops when asked", skip, func() (string, error) { return s.stops(ctx) })
	return list, ctx.Err()
}

func (s *sandbox) starts(ctx context.Context, t trial) (string, error) {
	args := []string{"spawn", trySubject, "--agent", t.agent, "--backend", t.backend, "--restart", "never", "--worktree", "none", "--cwd", s.work}
	if !t.offline && t.prompt != "" {
		args = append(args, "--prompt", t.prompt)
	}
	if len(t.command) > 0 {
		args = append(append(args, "--"), t.command...)
	}
	if err := s.run(ctx, nil, args...); err != nil {
		return "", err
	}
	var m sandboxMember
	err := s.until(ctx, t, "running", func() (ok bool, seen string, err error) {
		m, err = s.member(ctx)
		if err == nil && m.ended() {
			return false, "", m.gone()
		}
		return m.PID > 0 && m.Observed == team.Running, string(m.Observed), err
	})
	s.pid = m.PID
	return m.place(), err
}

func (s *sandbox) ready(ctx context.Context, t trial) (string, error) {
	var r sandboxState
	err := s.until(ctx, t, "ready", func() (ok bool, seen string, err error) {
		r, err = s.state(ctx)
		switch r.For {
		case team.WaitTrust:
			return false, "", errors.New("it asks whether it may trust the directory: answer it once in one of yours, and test with --dir")
		case team.WaitLogin:
			return false, "", errors.New("it asks for a login: start it yourself once")
		case "", team.WaitPermission, team.WaitPlan, team.WaitQuestion:
		}
		return r.Ready, r.shown(), err
	})
	return r.shown(), err
}

// restsFor is how long an agent observed only by its screen must be at rest before an unseen turn
// counts as over.
const restsFor = 10 * time.Second

// prompted checks that the first prompt was accepted: the evidence is that the agent worked. A
// turn may be over before the screen is read, which is not a failure if nothing else could show it.
func (s *sandbox) prompted(ctx context.Context, t trial) (string, error) {
	var rests time.Time // since when it is at rest
	over := false
	err := s.until(ctx, t, "at work", func() (bool, string, error) {
		worked, err := s.worked(ctx)
		if err != nil || worked {
			over = false
			return worked, "", err
		}
		r, err := s.state(ctx)
		if over = err == nil && !r.worked() && r.restsOnScreen(); !over {
			rests = time.Time{}
			return r.worked(), r.shown(), err
		}
		if rests.IsZero() {
			rests = time.Now()
		}
		return time.Since(rests) >= restsFor, r.shown(), nil
	})
	if over {
		return "", notTried("its turn was over before its screen was read, or no rule of its screen knows it at work")
	}
	return "it was seen at work", err
}

func (s *sandbox) becomes(ctx context.Context, t trial, want team.Activity) (string, error) {
	var r sandboxState
	err := s.until(ctx, t, string(want), func() (ok bool, seen string, err error) {
		r, err = s.state(ctx)
		return r.Activity == want, r.shown(), err
	})
	return r.Source, err
}

func (s *sandbox) mailed(ctx context.Context, t trial) (string, error) {
	id, err := s.send(ctx, t.mail)
	if err != nil {
		return "", err
	}
	return s.came(ctx, t, id, team.Accepted)
}

// send sends a message and returns its id.
func (s *sandbox) send(ctx context.Context, text string) (id string, err error) {
	var sent struct {
		ID string `json:"message_id"`
	}
	err = s.run(ctx, &sent, "send", trySubject, "--", text)
	return sent.ID, err
}

// arrival is the delivery state of a message.
type arrival struct {
	State            team.DeliveryState
	Evidence, Reason string
}

func (d arrival) accepted() bool {
	return d.State == team.Accepted || d.State == team.Read || d.State == team.Answered
}

func (s *sandbox) delivery(ctx context.Context, id string) (arrival, error) {
	var m struct{ Deliveries []arrival }
	if err := s.run(ctx, &m, "message", "show", id); err != nil || len(m.Deliveries) == 0 {
		return arrival{}, err
	}
	return m.Deliveries[0], nil
}

// came waits until a message has come so far at least; the evidence is returned.
func (s *sandbox) came(ctx context.Context, t trial, id string, far team.DeliveryState) (string, error) {
	evidence := ""
	err := s.until(ctx, t, string(far), func() (bool, string, error) {
		d, err := s.delivery(ctx, id)
		switch {
		case err != nil:
			return false, "", err
		case d.accepted():
			evidence = d.Evidence
			return true, "", nil
		case d.State == team.Dropped:
			return false, "", errors.New("it was dropped: " + d.Reason)
		}
		seen := string(d.State)
		if d.Reason != "" {
			seen += ": " + d.Reason
		}
		return d.State == far, seen, nil
	})
	return evidence, err
}

// interrupted interrupts the turn of its own message. A turn begun by earlier mail may continue
// when that message is accepted, and some agents give evidence of a message only at the end of its
// turn, so it waits for injected. A model that answers at once cannot be interrupted.
func (s *sandbox) interrupted(ctx context.Context, t trial) (string, error) {
	began := time.Now()
	id, err := s.send(ctx, t.busy)
	if err != nil {
		return "", err
	}
	if _, err := s.came(ctx, t, id, team.Injected); err != nil {
		return "", err
	}
	rested, over := 0, false
	err = s.until(ctx, t, string(team.Working), func() (bool, string, error) {
		over = false
		r, err := s.state(ctx)
		if err != nil || r.Activity == team.Working {
			return err == nil, "", err
		}
		d, err := s.delivery(ctx, id)
		if over = r.Activity == team.Idle && d.accepted(); over && r.rested(began) {
			rested++
		}
		return rested > 2, r.shown(), err
	})
	switch {
	case over:
		return "", notTried("its turn was over before it could be interrupted")
	case err != nil:
		return "", err
	}
	if err := s.run(ctx, nil, "interrupt", trySubject); err != nil {
		return "", err
	}
	return s.becomes(ctx, t, team.Idle)
}

func (s *sandbox) stops(ctx context.Context) (string, error) {
	var out any
	if err := s.run(ctx, &out, "stop", trySubject); err != nil {
		return "", err
	}
	if s.lives() {
		return "", fmt.Errorf("process %d is still there", s.pid)
	}
	m, err := s.member(ctx)
	return m.Exit, err
}
