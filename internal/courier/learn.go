package courier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// A program that was late with its version is asked again while it runs: soon, for the
// machine may have been busy with its start, then ever more seldom, and at last not at all.
const (
	learnFirst  = 5 * time.Second
	learnMost   = 10 * time.Minute
	learnTries  = 12
	learnWithin = 2 * time.Minute // nobody waits for it
)

// versionFile is what a program has said of its version since it was started.
const versionFile = "version.json"

type learnedVersion struct {
	Generation string `json:"generation"`
	Version    string `json:"version"`
}

// learned is the version that a generation was found to have; "" where it was not.
func learned(b team.Bundle, generation string) string {
	var l learnedVersion
	if err := ReadJSON(b, versionFile, &l); err != nil || l.Generation != generation {
		return ""
	}
	return l.Version
}

// assumedInVain reports whether the start before this one was of a version that was only
// assumed, and nothing was ever heard of the agent: it may be a version that has no such
// flags.
func assumedInVain(b team.Bundle, agent string) bool {
	last, err := ReadLink(b, "")
	if err != nil || last.Agent != agent || last.Assumed == "" || last.Version != "" {
		return false
	}
	var c Conversation
	return ReadJSON(b, conversationFile, &c) != nil || c.Generation != last.Generation
}

// AskVersion asks the program of a member that runs for its version. Nobody waits for the answer.
func AskVersion(ctx context.Context, l adapter.Launcher, in adapter.Input) (string, error) {
	argv, ok := l.Probe(in)
	if !ok {
		return "", team.Errorf(team.CodeInternal, "%s has no version to ask for", in.Agent)
	}
	return Version(ctx, in.Layout.Home, argv, probeEnv(in), learnWithin)
}

// learner finds out the version of a program that was started without it being known.
type learner struct {
	f      Facts
	report Report
	first  time.Duration // learnFirst
	known  atomic.Value  // adapter.Version
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newLearner begins to ask; nil where there is nothing to learn.
func newLearner(f Facts, r Report) *learner {
	if f.Link.Assumed == "" || f.Link.Version != "" || f.Probe == nil {
		return nil
	}
	return startLearner(f, r, learnFirst)
}

func startLearner(f Facts, r Report, first time.Duration) *learner {
	ctx, cancel := context.WithCancel(context.Background())
	l := &learner{f: f, report: r, first: first, cancel: cancel}
	l.done.Go(func() { l.run(ctx) })
	return l
}

func (l *learner) run(ctx context.Context) {
	wait := l.first
	for range learnTries {
		if !Pause(ctx, wait) {
			return
		}
		wait = min(2*wait, learnMost)
		text, err := l.f.Probe(ctx)
		v, ok := adapter.ParseVersion(text)
		switch {
		case ok:
			l.is(v)
			return
		case err == nil || team.ReasonOf(err) != team.ReasonVersionLate: // asked again it says the same
			l.f.Log.Info("version not learned", "member", l.f.Name, "text", text, "err", err)
			return
		}
	}
}

// is notes the version for hooks and the next supervisor, and has what was held looked at.
func (l *learner) is(v adapter.Version) {
	l.known.Store(v)
	if err := WriteJSON(l.f.Bundle, versionFile, learnedVersion{l.f.Generation, v.String()}); err != nil {
		l.f.Log.Warn("note the version", "member", l.f.Name, "err", err)
		return
	}
	l.f.Log.Info("version learned", "member", l.f.Name, "version", v.String(), "assumed", l.f.Link.Assumed)
	l.report(team.Observation{Tier: team.TierScreen, At: time.Now(), Source: "version " + v.String()})
}

// close ends the asking.
func (l *learner) close() {
	if l == nil {
		return
	}
	l.cancel()
	l.done.Wait()
}

// version is that of the program; the zero value where it is not known yet.
func (f Facts) version() adapter.Version {
	if f.learn != nil {
		if v, ok := f.learn.known.Load().(adapter.Version); ok {
			return v
		}
	}
	v, _ := adapter.ParseVersion(f.Link.Version)
	return v
}
