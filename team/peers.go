package team

import (
	"fmt"
	"strings"
)

// Peer is a member as the others are told of it.
type Peer struct {
	Name string
	Role Role
	Type string // agent type, "" for none
}

// maxPeers bounds how many members a context begins with.
const maxPeers = 30

// Introduce says who a member is and who its peers are, for the beginning of its context.
func Introduce(self Peer, peers []Peer) string {
	var b strings.Builder
	if self.Role != "" {
		fmt.Fprintf(&b, "Your role is %s.\n", self.described())
	}
	if len(peers) > 0 {
		b.WriteString("Members of the team now; TeamStatus lists who has joined or left since:\n")
	}
	for i, p := range peers {
		if i == maxPeers {
			fmt.Fprintf(&b, "- and %d more\n", len(peers)-i)
			break
		}
		fmt.Fprintf(&b, "- %s: %s\n", p.Name, p.described())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (p Peer) described() string {
	s := string(p.Role)
	if p.Type != "" {
		s += fmt.Sprintf(" (%q)", p.Type)
	}
	return s
}
