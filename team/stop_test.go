package team

import (
	"slices"
	"strings"
	"testing"
)

// The table of a stop, spelled out once more: a change of an edge has to be meant.
func TestStopTable(t *testing.T) {
	t.Parallel()
	want := map[StopState]string{
		StopIsOrdered:  "asked ending ended failed",
		StopIsAsked:    "draining ending ended rejected",
		StopIsDraining: "ending ended rejected",
		StopIsEnding:   "ended failed",
		StopIsEnded:    "",
		StopIsRejected: "",
		StopIsFailed:   "",
	}
	all := StopStates()
	if len(all) != len(want) {
		t.Fatalf("%d states, want %d", len(all), len(want))
	}
	for _, from := range all {
		for _, to := range all {
			legal := slices.Contains(strings.Fields(want[from]), string(to))
			if slices.Contains(from.Next(), to) != legal {
				t.Errorf("%s -> %s: legal %v, want %v", from, to, !legal, legal)
			}
			got, err := from.Move(to)
			if legal && (got != to || err != nil) {
				t.Errorf("%s -> %s: %s, %v", from, to, got, err)
			}
			if !legal && (got != from || !IsCode(err, CodeInternal) || !strings.Contains(err.Error(), string(from)) || !strings.Contains(err.Error(), string(to))) {
				t.Errorf("%s -> %s: %s, %v", from, to, got, err)
			}
		}
	}
}

// Every outcome but the one of a caller that does not wait is the end of a stop.
func TestStopOutcomesAreFinal(t *testing.T) {
	t.Parallel()
	for _, o := range OutcomesOfStopping() {
		st := StopStateOf(o.Name)
		if final := len(st.Next()) == 0; final != (o.Name != StopRequested) {
			t.Errorf("%s is over as %s", o.Name, st)
		}
	}
}
