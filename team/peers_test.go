package team

import (
	"fmt"
	"strings"
	"testing"
)

// A context names a bounded number of members.
func TestIntroduceIsBounded(t *testing.T) {
	t.Parallel()
	peers := make([]Peer, maxPeers+12)
	for i := range peers {
		peers[i] = Peer{Name: fmt.Sprintf("m%d", i), Role: RoleExecutor}
	}
	text := Introduce(Peer{Name: "me", Role: RoleReviewer}, peers)
	if strings.Count(text, "\n- m") != maxPeers || !strings.HasSuffix(text, "\n- and 12 more") || !strings.HasPrefix(text, "Your role is reviewer.\n") {
		t.Error(text)
	}
	if text := Introduce(Peer{}, nil); text != "" {
		t.Errorf("%q", text)
	}
}
