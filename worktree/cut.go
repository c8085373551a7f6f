package worktree

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/team"
)

// cutFile, in the admin directory, records that Merge or Commit is at work
// there. It exists from before git's first change until after its last, so an
// unlocked one shows Recover what a killed process was doing. A killed
// fast-forward leaves no MERGE_HEAD, only missing files, and those must not be
// taken for deletions by the agent.
const cutFile = "teamctl-doing.json"

// doing is the content of cutFile.
type doing struct {
	Kind      string    `json:"kind"` // merge, commit, restore, forward, rebase
	Head      string    `json:"head"` // before the operation
	Commits   []string  `json:"commits,omitempty"`
	Untracked []string  `json:"untracked,omitempty"` // files that were not tracked before
	Began     time.Time `json:"began"`
}

const (
	doingMerge   = "merge"
	doingCommit  = "commit"
	doingRestore = "restore"
	doingForward = "forward"
	doingRefresh = "refresh"
)

// begin records an operation that is about to start; done removes the record.
func (t tree) begin(d doing) (done func(), err error) {
	d.Began = time.Now()
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(t.dir, cutFile)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return nil, noSpace(err)
	}
	return func() { _ = os.Remove(name) }, nil
}

// readDoing returns the record that a killed process left; ok is false if there
// is none. A truncated record was written before any change: it counts as none
// and is removed.
func (t tree) readDoing() (d doing, ok bool, err error) {
	name := filepath.Join(t.dir, cutFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil
	}
	if err != nil {
		return d, false, conflict(team.ReasonWorktreeUnknown, "read %s: %w", name, err)
	}
	if json.Unmarshal(data, &d) != nil || d.Kind == "" {
		return doing{}, false, os.Remove(name)
	}
	return d, true, nil
}

func (t tree) forget() { _ = os.Remove(filepath.Join(t.dir, cutFile)) }
