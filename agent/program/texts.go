package program

import (
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// texts stores results that are too long for an entry in files of the member's bundle.
type texts struct{ *Program }

// Keep implements llm.Texts.
func (x texts) Keep(session, text string) (string, error) {
	x.mu.Lock()
	space := x.spaces[session]
	x.mu.Unlock()
	if space == nil {
		return "", team.Errorf(team.CodeInternal, "keep a long result: no turn of %s has begun", session)
	}
	file, err := space.Spill("entry", text)
	return filepath.Base(file), err
}

// Read implements llm.Texts.
func (x texts) Read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(x.outputs(), filepath.Base(name)))
	return string(b), err
}
