package courier

import (
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// seenFile is the bundle's record of the last observation of a hook.
const seenFile = "seen.json"

// SeenFile is the observation of a member's newest hook, for the next supervisor.
type SeenFile struct {
	Generation string           `json:"generation"`
	Seen       team.Observation `json:"seen"`
}

// SeenPath returns the path of the SeenFile.
func SeenPath(b team.Bundle) string { return filepath.Join(string(b), seenFile) }

// WriteSeen replaces the SeenFile of the bundle.
func WriteSeen(b team.Bundle, s SeenFile) error { return WriteJSON(b, seenFile, s) }

// ReadSeen returns what the newest hook of a generation has seen; ever is false if none was heard.
func ReadSeen(b team.Bundle, generation string) (o team.Observation, ever bool, err error) {
	var s SeenFile
	err = ReadJSON(b, seenFile, &s)
	if team.IsCode(err, team.CodeNotFound) || err == nil && s.Generation != generation {
		return o, false, nil
	}
	return s.Seen, err == nil, err
}
