package supervisor

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// stopRig is a rig with one member, a, that records the states of its stops.
type stopRig struct {
	*rig
	s    *Supervisor
	mu   sync.Mutex
	path []string // "ordered -> asked"
}

func (r *stopRig) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.path)
}

// stops begins a stop.
func (r *stopRig) stops(wait time.Duration) <-chan stopResult {
	return r.stop(r.s, team.StopRequest{Names: []string{"a"}, Wait: wait})
}

func (r *stopRig) approves(id string) {
	r.answer("a", team.KindShutdownApproved, id, encode(r.rig, inbox.ShutdownApproved{RequestID: id, From: "a"}))
}

func (r *stopRig) rejects(id string) {
	r.answer("a", team.KindShutdownRejected, id, encode(r.rig, inbox.ShutdownRejected{RequestID: id, From: "a", Reason: "busy"}))
}

// drains waits until the supervisor has read an approval.
func (r *stopRig) drains() {
	r.wait("a", "draining", func(ledger.Member) bool {
		d, err := r.s.Debug(r.Context())
		return err == nil && strings.HasPrefix(d.Members[0].Stopping, string(team.StopIsDraining))
	})
}

func (r *stopRig) ends() { r.m.agent(r.layout, "a").end(backends.Exit{Known: true}) }

// A supervisor makes every transition of the table, and each way of stopping makes those that the
// table has for it.
func TestEveryStopTransition(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name    string
		answers bool
		set     func(*rig)
		do      func(*stopRig) (string, error)
		want    string
		path    string
	}{
		{"an agent that takes no requests", false, nil, func(r *stopRig) (string, error) {
			return outcome(<-r.stops(time.Hour))
		}, team.StopUnasked, "ordered ending ended"},
		{"approved twice, and ends by itself", true, func(r *rig) { r.policy.Grace = time.Hour }, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			id := r.shutdownRequestTo("a").RequestID
			r.approves(id)
			r.approves(id)
			r.drains()
			r.ends()
			return outcome(<-done)
		}, team.StopApproved, "ordered asked draining ended"},
		{"approved, and does not end", true, func(r *rig) { r.policy.Grace = 20 * time.Millisecond }, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			r.approves(r.shutdownRequestTo("a").RequestID)
			return outcome(<-done)
		}, team.StopApproved, "ordered asked draining ending ended"},
		{"rejected", true, nil, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			r.rejects(r.shutdownRequestTo("a").RequestID)
			return outcome(<-done)
		}, team.StopRejected, "ordered asked rejected"},
		{"rejected after all", true, func(r *rig) { r.policy.Grace = time.Hour }, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			id := r.shutdownRequestTo("a").RequestID
			r.approves(id)
			r.drains()
			r.rejects(id)
			return outcome(<-done)
		}, team.StopRejected, "ordered asked draining rejected"},
		{"no answer", true, nil, func(r *stopRig) (string, error) {
			return outcome(<-r.stops(20 * time.Millisecond))
		}, team.StopDeadline, "ordered asked ending ended"},
		{"ends before it answers", true, nil, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			r.shutdownRequestTo("a")
			r.ends()
			return outcome(<-done)
		}, team.StopApproved, "ordered asked ended"},
		{"by force while it is asked", true, nil, func(r *stopRig) (string, error) {
			done := r.stops(time.Hour)
			r.shutdownRequestTo("a")
			if _, err := r.s.StopMembers(r.Context(), team.StopRequest{Names: []string{"a"}, Force: true}); err != nil {
				return "", err
			}
			return outcome(<-done)
		}, team.StopForced, "ordered asked ending ended"},
		{"stopped already", false, nil, func(r *stopRig) (string, error) {
			<-r.stops(time.Hour)
			r.mu.Lock()
			r.path = nil
			r.mu.Unlock()
			return outcome(<-r.stops(time.Hour))
		}, team.StopAlready, "ordered ended"},
		{"cannot be ended", false, func(r *rig) { r.m.unstop = errors.New("it does not die") }, func(r *stopRig) (string, error) {
			return outcome(<-r.stops(time.Hour))
		}, team.StopFailed, "ordered ending failed"},
		{"in doubt", false, nil, func(r *stopRig) (string, error) {
			r.s.Close()
			r.blind("a", errors.New("no server"))
			r.s = r.supervisor()
			r.wait("a", "in doubt", state.Unknown)
			return outcome(<-r.stops(time.Hour))
		}, team.StopFailed, "ordered failed"},
	}
	var seen []string
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			r := &stopRig{rig: newRig(t)}
			r.step = func(at string) {
				if edge, ok := strings.CutPrefix(at, "stop: "); ok {
					r.mu.Lock()
					r.path = append(r.path, edge)
					r.mu.Unlock()
				}
			}
			r.plans.answers = way.answers
			if way.set != nil {
				way.set(r.rig)
			}
			r.s = r.supervisor()
			r.spawn(r.s, "a", team.RestartNever)
			got, err := way.do(r)
			if failed := way.want == team.StopFailed || way.want == team.StopRejected; got != way.want || (err != nil) != failed {
				t.Errorf("%q, %v; want %q", got, err, way.want)
			}
			var want []string
			states := strings.Fields(way.path)
			for i, to := range states[1:] {
				want = append(want, states[i]+" -> "+to)
			}
			if path := r.took(); !slices.Equal(path, want) {
				t.Errorf("went %q, want %q", path, want)
			}
			seen = append(seen, r.took()...)
		})
	}
	for _, from := range team.StopStates() {
		for _, to := range from.Next() {
			if edge := string(from) + " -> " + string(to); !slices.Contains(seen, edge) {
				t.Errorf("no way of a stop takes %s", edge)
			}
		}
	}
}

func outcome(got stopResult) (string, error) {
	if len(got.out) != 1 {
		return "", got.err
	}
	return got.out[0].Outcome, got.err
}
