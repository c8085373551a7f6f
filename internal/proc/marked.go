package proc

import (
	"bytes"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/team"
)

// Marked is a process that was executed as a member's process, or below one.
type Marked struct {
	ID         backends.ProcID
	Team       string // key of the team
	Agent      string // name of the member
	Generation string
}

// OfTeam lists the living processes of this user whose environment marks them
// as belonging to a member of the team key in home; "" matches any team.
func OfTeam(home, key string) ([]Marked, error) {
	var out []Marked
	buf := make([]byte, 16<<10)
	_, err := list(func(in info) bool {
		if in.bare {
			return false
		}
		raw := environ.Of(in.pid, buf)
		m, ok := markOf(raw, home, key)
		if ok {
			m.ID.PID, m.ID.StartTicks = in.pid, in.start
			out = append(out, m)
		}
		return false
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	boot, err := bootID()
	for i := range out {
		out[i].ID.BootID = boot
	}
	return out, err
}

func markOf(raw []byte, home, key string) (m Marked, ok bool) {
	if _, detached := marks(raw); detached {
		return m, false
	}
	var in string
	for kv := range bytes.SplitSeq(raw, []byte{0}) {
		switch name, value, _ := bytes.Cut(kv, []byte("=")); string(name) {
		case team.EnvHome:
			in = string(value)
		case team.EnvGen:
			m.Generation = string(value)
		case team.EnvAgentID:
			if agent, of, ok := team.ParseAgentID(string(value)); ok && (of == key || key == "") {
				m.Agent, m.Team = agent, of
			}
		}
	}
	return m, in == home && m.Agent != "" && m.Generation != ""
}
