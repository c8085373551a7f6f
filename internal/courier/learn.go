package courier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// A program that did not print its version in time is asked again while it runs: soon, since the
// machine may have been busy with its start, then at growing intervals, and finally not at all.
const (
	learnFirst  = 5 * time.Second
	learnMost   = 10 * time.Minute
	learnTries  = 12
	learnWithin = 2 * time.Minute // nothing waits for it
)

// versionFile records the version learned after the start.
const versionFile = "version.json"

type learnedVersion struct {
	Generation string `json:"generation"`
	Version    string `json:"version"`
}

// learned returns the version learned for a generation, "" if there is none.
func learned(b team.Bundle, generation string) string {
	var l learnedVersion
	if err := ReadJSON(b, versionFile, &l); err != nil || l.Generation != generation {
		return ""
	}
	return l.Version
}

// assumedInVain reports whether the previous start assumed a version and the agent was never heard
// of: its version may lack the flags that were used.
func assumedInVain(b team.Bundle, agent string) bool {
	last, err := ReadLink(b, "")
	if err != nil || last.Agent != agent || last.Assumed == "" || last.Version != "" {
		return false
	}
	var c Conversation
	return ReadJSON(b, conversationFile, &c) != nil || c.Generation != last.Generation
}

// AskVersion asks the program of a running member for its version. Nothing waits for the answer.
func AskVersion(ctx context.Context, l adapter.Launcher, in adapter.Input) (string, error) {
	argv, ok := l.Probe(in)
	if !ok {
		return "", team.Errorf(team.CodeInternal, "%s has no version to ask for", in.Agent)
	}
	return Version(ctx, in.Layout.Home, argv, probeEnv(in), learnWithin)
}

// learner finds out the version of a program that was started with an assumed one.
type learner struct {
	f      Facts
	report Report
	first  time.Duration // learnFirst
	known  atomic.Value  // adapter.Version
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newLearner starts asking; nil if there is nothing to learn.
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
		case err == nil || team.ReasonOf(err) != team.ReasonVersionLate: // the program would give the same answer again
			l.f.Log.Info("version not learned", "member", l.f.Name, "text", text, "err", err)
			return
		}
	}
}

// is records the version for hooks and the next supervisor, and triggers another look at held
// mail.
func (l *learner) is(v adapter.Version) {
	l.known.Store(v)
	if err := WriteJSON(l.f.Bundle, versionFile, learnedVersion{l.f.Generation, v.String()}); err != nil {
		l.f.Log.Warn("note the version", "member", l.f.Name, "err", err)
		return
	}
	l.f.Log.Info("version learned", "member", l.f.Name, "version", v.String(), "assumed", l.f.Link.Assumed)
	l.report(team.Observation{Tier: team.TierScreen, At: time.Now(), Source: "version " + v.String()})
}

// close stops asking.
func (l *learner) close() {
	if l == nil {
		return
	}
	l.cancel()
	l.done.Wait()
}

// Version returns the program's version; the zero value while it is unknown.
func (f Facts) Version() adapter.Version {
	if f.learn != nil {
		if v, ok := f.learn.known.Load().(adapter.Version); ok {
			return v
		}
	}
	v, _ := adapter.ParseVersion(f.Link.Version)
	return v
}
