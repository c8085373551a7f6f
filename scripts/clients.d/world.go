package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
)

// world is an empty home with the CLIs' own configuration as a person would have it, a repository,
// a team, and a model.
type world struct {
	*agentlab.Home
	exe     string
	model   *fakemodel.Server
	started time.Time
	tokens  int
	prompt  string // token of the first prompt
	limit   time.Duration
	busy    int
	letters int
	rounds  int
	many    int
	wait    time.Duration
}

func newWorld(ctx context.Context, o options, with []agentlab.Client) (_ *world, err error) {
	w := &world{exe: o.exe, limit: o.limit, busy: o.busy, letters: o.letters, rounds: o.rounds, many: o.many, wait: o.wait, started: time.Now()}
	if w.model, err = fakemodel.Start("", nil); err != nil {
		return nil, err
	}
	if w.Home, err = agentlab.NewHome(ctx, filepath.Dir(o.cache), o.cache, w.model.URL, with); err != nil {
		return nil, errors.Join(err, w.model.Close())
	}
	if _, err := w.teamctl(ctx, "create", "demo", "--repo", w.Repo); err != nil {
		return nil, errors.Join(err, w.close(false))
	}
	return w, nil
}

// close ends the team and the remaining processes: all of them have the world's directory in their
// environment.
func (w *world) close(keep bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if !keep {
		if _, err := w.teamctl(ctx, "delete", "--force"); err != nil { // what it cannot end is ended below
			fmt.Fprintln(os.Stderr, "clients:", err)
		}
	}
	err := errors.Join(w.Reap(), w.model.Close())
	if keep {
		err = errors.Join(err, w.keepRequests())
		fmt.Fprintln(os.Stderr, "kept:", w.Dir)
		return err
	}
	return errors.Join(err, w.Remove())
}

// keepRequests writes the requests to the model and its answers.
func (w *world) keepRequests() error {
	f, err := os.Create(filepath.Join(w.Dir, "requests.jsonl"))
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	for _, r := range w.model.Requests() {
		r.Body = ""
		err = errors.Join(err, enc.Encode(r))
	}
	return errors.Join(err, f.Close())
}

func (w *world) teamctl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*w.limit)
	defer cancel()
	return w.Run(ctx, append([]string{w.exe}, args...)...)
}

// member has the used fields of a member in ps.
type member struct {
	Name       string `json:"name"`
	Observed   string `json:"observed"`
	Activity   string `json:"activity"`
	Generation string `json:"generation"`
	PID        int    `json:"pid"`
	Worktree   string `json:"worktree"`
}

func (w *world) members(ctx context.Context) ([]member, error) {
	out, err := w.teamctl(ctx, "ps", "--json")
	if err != nil {
		return nil, err
	}
	var all struct{ Members []member }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("read ps: %w", err)
	}
	return all.Members, nil
}

func (w *world) member(ctx context.Context, name string) (member, error) {
	all, err := w.members(ctx)
	if err != nil {
		return member{}, err
	}
	for _, m := range all {
		if m.Name == name {
			return m, nil
		}
	}
	return member{}, fmt.Errorf("%s is not in ps", name)
}

// becomes waits until a member is shown with an activity, by one command of a person: a list of the
// members for each look would start many processes.
func (w *world) becomes(ctx context.Context, name, activity string) (m member, err error) {
	err = w.until(ctx, activity, func() (bool, error) {
		out, err := w.teamctl(ctx, "wait", "--member", name, "--state", activity, "--timeout", w.limit.String(), "--json")
		if err != nil {
			return false, err
		}
		var is struct{ Member member }
		if err := json.Unmarshal([]byte(out), &is); err != nil {
			return false, fmt.Errorf("read the answer of wait: %w", err)
		}
		m = is.Member
		return true, nil
	})
	return m, err
}

// lives reports a model that is gone: no later result would be true.
func (w *world) lives() error {
	if w.model == nil {
		return errors.New("there is no model")
	}
	return nil
}

// until polls a condition without an event, by ps as a person does. A look often starts a process,
// and must not keep the awaited process from running: the pauses grow with the duration of a look
// and of the wait.
func (w *world) until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	var last error
	began := time.Now()
	for {
		look := time.Now()
		good, err := ok()
		if good && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		next := time.NewTimer(max(200*time.Millisecond, 2*time.Since(look), time.Since(began)/5))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return errors.Join(fmt.Errorf("not %s within %s", what, w.limit), last)
		}
	}
}

// asked waits for the request with a text.
func (w *world) asked(ctx context.Context, text string) (fakemodel.Request, error) {
	return w.request(ctx, text, func(r fakemodel.Request) bool { return strings.Contains(r.New, text) })
}

// answered waits for the request that was answered with a text.
func (w *world) answered(ctx context.Context, text string) (fakemodel.Request, error) {
	return w.request(ctx, text, func(r fakemodel.Request) bool { return strings.Contains(r.Answer, text) })
}

func (w *world) request(ctx context.Context, what string, ok func(fakemodel.Request) bool) (fakemodel.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	r, err := w.model.Wait(ctx, func(r fakemodel.Request) bool { return !r.Side && ok(r) })
	if err != nil {
		return r, fmt.Errorf("%q did not reach the model within %s (%d requests)", what, w.limit, len(w.model.Requests()))
	}
	return r, nil
}

// token is a word that nothing else contains.
func (w *world) token(what string) string {
	w.tokens++
	return fmt.Sprintf("%s-%d-%d", what, w.started.UnixMilli()%100000, w.tokens)
}
