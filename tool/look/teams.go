package look

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Teams follows all teams of a home directory.
type Teams struct {
	env  *tool.Env
	dirs dirwatch.Hub  // of the directory of teams
	deaf func()        // ends its watch
	came chan struct{} // a team may have come or gone
	out  chan struct{}
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	here  bool // somebody may look
	teams map[string]*followed
	crash string // a panic of its goroutines, with the stack
}

// goes runs f in a goroutine, whose panic Changes passes on.
func (w *Teams) goes(f func()) {
	w.done.Go(func() {
		defer func() {
			if what := recover(); what != nil {
				w.mu.Lock()
				w.crash = crashText(what)
				w.mu.Unlock()
				wakeOne(w.out)
			}
		}()
		f()
	})
}

// followed is a team that is followed.
type followed struct {
	looks  chan bool // see view.Interest
	silent time.Time // see Silence
}

// FollowTeams follows all teams until ctx ends or Stop is called. looks is as in view.Interest.
func FollowTeams(ctx context.Context, env *tool.Env, looks <-chan bool) (*Teams, error) {
	w := &Teams{
		env: env, came: make(chan struct{}, 1), out: make(chan struct{}, 1),
		here: true, teams: map[string]*followed{},
	}
	var err error
	w.deaf, err = w.dirs.Watch(env.Home.TeamsDir(), func(dirwatch.Event) { wakeOne(w.came) })
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, team.Errorf(team.CodeNotFound, "there is no team yet").WithReason(team.ReasonTeamNotFound).WithHint("teamctl create demo --repo .")
		}
		return nil, team.Errorf(team.CodeUnavailable, "watch the teams: %w", err)
	}
	ctx, w.stop = context.WithCancel(ctx)
	wakeOne(w.out)
	w.goes(func() { w.loop(ctx, looks) })
	return w, nil
}

// Stop ends it, and waits for that.
func (w *Teams) Stop() {
	w.stop()
	w.deaf()
	w.done.Wait()
}

// Changes receives a value at first, and when any team has changed, has come or gone, or its
// supervisor has ended, was replaced, or stops or continues to answer. It panics if a goroutine of w
// has, which is a change, too.
func (w *Teams) Changes() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crash != "" {
		panic(w.crash)
	}
	return w.out
}

// Silence returns the time since which the supervisor of a team has not answered, zero if it does
// or there is none.
func (w *Teams) Silence(key string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.teams[key]; f != nil {
		return f.silent
	}
	return time.Time{}
}

// wakeOne leaves at most one token.
func wakeOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Teams) loop(ctx context.Context, looks <-chan bool) {
	w.look(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.came:
			w.look(ctx)
			wakeOne(w.out)
		case here := <-looks:
			w.tell(here)
		}
	}
}

// tell tells all teams whether somebody may look.
func (w *Teams) tell(here bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.here = here
	for _, f := range w.teams {
		f.tell(here)
	}
}

// tell replaces what was told before and is not read yet. There is one caller at a time.
func (f *followed) tell(here bool) {
	select {
	case <-f.looks:
	default:
	}
	f.looks <- here
}

// look begins to follow new teams. A team that cannot be opened is retried when a team is created
// or deleted.
func (w *Teams) look(ctx context.Context) {
	keys, err := w.env.Keys()
	if err != nil {
		return // the list reports the error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range append(keys, w.env.LostTeams()...) {
		if w.teams[key] != nil {
			continue
		}
		f := &followed{looks: make(chan bool, 1)}
		if !w.here {
			f.tell(false)
		}
		w.teams[key] = f
		w.goes(func() { w.follow(ctx, key, f) })
	}
}

// follow follows one team until it is deleted.
func (w *Teams) follow(ctx context.Context, key string, f *followed) {
	gone := w.followOne(ctx, key, f)
	for w.returns(ctx, key) {
		gone = w.followOne(ctx, key, f)
	}
	w.mu.Lock()
	delete(w.teams, key)
	w.mu.Unlock()
	wakeOne(w.out)
	if gone {
		wakeOne(w.came) // there may be another one of that name
	}
}

// returns waits for the return of a ledger that is missing; false if it is not missing, the directory of
// the team goes, too, or ctx ends.
func (w *Teams) returns(ctx context.Context, key string) bool {
	l := w.env.Home.Team(key)
	dir := fileid.At(l.Dir)
	came := make(chan struct{}, 1)
	for _, d := range []string{w.env.Home.TeamsDir(), l.Dir} {
		deaf, err := w.dirs.Watch(d, func(dirwatch.Event) { wakeOne(came) })
		if err != nil {
			return false
		}
		defer deaf()
	}
	missing := func() bool { return fileid.At(l.Ledger()) == "" }
	if dir == "" || !missing() {
		return false
	}
	wakeOne(w.out)
	for missing() {
		select {
		case <-came:
		case <-ctx.Done():
			return false
		}
		if fileid.At(l.Dir) != dir {
			return false
		}
	}
	return true
}

// followOne is follow; gone reports that the ledger was removed or replaced.
func (w *Teams) followOne(ctx context.Context, key string, f *followed) (gone bool) {
	t, err := w.env.Open(ctx, key)
	if err != nil {
		return false
	}
	defer func() { _ = t.Close() }() // opened for reading only
	ledger := fileid.At(t.Layout.Ledger())
	moved := func() bool { return fileid.At(t.Layout.Ledger()) != ledger }
	err = watch(ctx, t, f.looks, func(silent time.Time) (time.Duration, error) {
		w.mu.Lock()
		f.silent = silent
		w.mu.Unlock()
		wakeOne(w.out)
		if moved() {
			return 0, fs.ErrNotExist
		}
		return putOffDue(ctx, t, time.Now())
	})
	return err != nil && moved()
}
