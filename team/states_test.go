package team

import (
	"slices"
	"strings"
	"testing"
)

// The member table, spelled out once more: a change of an edge has to be meant.
func TestObservedTable(t *testing.T) {
	t.Parallel()
	want := map[Observed]string{
		Pending:   "starting killed completed failed",
		Starting:  "running exited failed killed",
		Running:   "exited killed",
		Exited:    "backoff starting failed completed killed",
		Backoff:   "starting killed completed failed",
		Failed:    "starting killed completed",
		Completed: "starting killed",
		Killed:    "starting",
	}
	all := ObservedStates()
	if len(all) != len(want) || len(observedEdges) != len(want) {
		t.Fatalf("%d states, %d rows", len(all), len(observedEdges))
	}
	for _, from := range all {
		edges := strings.Fields(want[from])
		for _, to := range all {
			legal := slices.Contains(edges, string(to))
			if from.CanMove(to) != legal || slices.Contains(from.Next(), to) != legal {
				t.Errorf("%s -> %s: CanMove %v, want %v", from, to, from.CanMove(to), legal)
			}
			got, err := from.Move(to)
			if legal && (got != to || err != nil) {
				t.Errorf("%s -> %s: %s, %v", from, to, got, err)
			}
			if !legal && (got != from || err == nil || !strings.Contains(err.Error(), string(from)) || !strings.Contains(err.Error(), string(to))) {
				t.Errorf("%s -> %s: %s, %v", from, to, got, err)
			}
		}
	}
}

func TestNextIsACopy(t *testing.T) {
	t.Parallel()
	Pending.Next()[0] = Killed
	if Pending.Next()[0] != Starting {
		t.Error("the table can be changed from outside")
	}
}

func TestAliveAndTerminal(t *testing.T) {
	t.Parallel()
	for _, o := range ObservedStates() {
		if want := o == Starting || o == Running; o.Alive() != want {
			t.Errorf("%s alive: %v", o, o.Alive())
		}
		if want := o == Failed || o == Completed || o == Killed; o.Terminal() != want {
			t.Errorf("%s terminal: %v", o, o.Terminal())
		}
		if o.Alive() && o.Terminal() {
			t.Errorf("%s is both", o)
		}
	}
}

func TestTaskTable(t *testing.T) {
	t.Parallel()
	want := map[TaskStatus]string{
		TaskPending:    "claimed failed",
		TaskClaimed:    "in_progress completed failed pending",
		TaskInProgress: "completed failed pending",
		TaskFailed:     "pending",
		TaskCompleted:  "",
	}
	for _, from := range TaskStatuses() {
		for _, to := range TaskStatuses() {
			if legal := slices.Contains(strings.Fields(want[from]), string(to)); from.CanMove(to) != legal {
				t.Errorf("%s -> %s: %v", from, to, !legal)
			}
		}
	}
}

func TestParsers(t *testing.T) {
	t.Parallel()
	type result struct {
		got string
		err error
	}
	parsers := map[string]func(string) result{
		"task":    func(s string) result { v, err := ParseTaskStatus(s); return result{string(v), err} },
		"role":    func(s string) result { v, err := ParseRole(s); return result{string(v), err} },
		"restart": func(s string) result { v, err := ParseRestartPolicy(s); return result{string(v), err} },
		"mode":    func(s string) result { v, err := ParseMode(s); return result{string(v), err} },
	}
	valid := map[string]string{
		"task":    "pending claimed in_progress completed failed",
		"role":    "leader executor reviewer observer operator",
		"restart": "never on-failure always",
		"mode":    "default acceptEdits bypassPermissions plan delegate dontAsk",
	}
	empty := map[string]string{"role": "executor", "restart": "on-failure", "mode": "default"}
	for name, parse := range parsers {
		for _, s := range strings.Fields(valid[name]) {
			if r := parse(s); r.got != s || r.err != nil {
				t.Errorf("%s %q: %+v", name, s, r)
			}
		}
		for _, s := range []string{"x", "PENDING", "Leader", " never"} {
			if r := parse(s); r.got != "" || !IsCode(r.err, CodeInvalid) || HintOf(r.err) == "" {
				t.Errorf("%s %q: %+v", name, s, r)
			}
		}
		if r := parse(""); r.got != empty[name] || (r.err == nil) != (empty[name] != "") {
			t.Errorf("%s empty: %+v", name, r)
		}
	}
}
