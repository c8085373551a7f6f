package policy

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A caller that requests a place in tmux which is not available is told so, with the command that
// shows the member; other callers are not.
func TestLayoutWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ backend, layout, says, hint string }{
		{"tmux", "split", "", ""}, {"tmux", "", "", ""}, {"pty", "", "", ""}, {"in-process", "", "", ""},
		{"pty", "split", "there is no split", "teamctl attach ann"},
		{"pty", "window", "there is no window", "teamctl attach ann"},
		{"pty", "session", "there is no session", "teamctl attach ann"},
		{"in-process", "window", "there is no window", "teamctl logs ann"},
	} {
		w := LayoutWarnings(ledger.Member{Name: "ann", Spec: team.MemberSpec{Backend: tt.backend, Layout: team.PaneLayout(tt.layout)}})
		if len(w) > 1 || (len(w) == 1) != (tt.says != "") || len(w) == 1 && (!strings.Contains(w[0], tt.says) || !strings.Contains(w[0], tt.hint)) {
			t.Errorf("%s with layout %q: %q", tt.backend, tt.layout, w)
		}
	}
}
