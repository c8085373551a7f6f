// Package viewtest has a team in the middle of a day, for tests that draw one: what the screens
// read of a team of stand-ins that scripts/screens has played, at times of its script.
package viewtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// Day is what the screens show of the team.
type Day struct {
	Now      time.Time           `json:"now"`
	Before   view.Snapshot       `json:"before"`   // a permission is asked
	After    view.Snapshot       `json:"after"`    // it is approved
	Requests []view.Request      `json:"requests"` // pending before
	Changes  view.Changes        `json:"changes"`  // of cart
	Depends  map[string][]string `json:"depends"`  // by task
}

// File is the path of the recorded team from the root of the repository.
const File = "docs/screens/team.json"

// Read reads the recorded team. up is the path from the test's directory to the root.
func Read(t testing.TB, up string) (d Day) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(up, File))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatalf("%v: scripts/screens writes it", err)
	}
	return d
}
