package team

import "testing"

func TestAnnounceStatusOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state          TurnState
		reason, cancel string
		want           AnnounceStatus
	}{
		{TurnDone, "", "", AnnouncedOK},
		{TurnFailed, "loop", "", AnnouncedError},
		{TurnFailed, TurnCrashes, "", AnnouncedUnknown},
		{TurnCancelled, "", "not needed", AnnouncedError},
		{TurnCancelled, "", TurnTimeout, AnnouncedTimeout},
		{TurnCancelled, TurnTimeout, "", AnnouncedTimeout}, // before it began
	} {
		if got := AnnounceStatusOf(c.state, c.reason, c.cancel); got != c.want {
			t.Errorf("%s, %q, %q: %s, want %s", c.state, c.reason, c.cancel, got, c.want)
		}
	}
}
