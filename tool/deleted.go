package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// maxDeleted bounds the names of deleted teams that are kept.
const maxDeleted = 200

// noteWait bounds the wait for another process that notes a deletion.
const noteWait = 5 * time.Second

// deletedFile has the names of the teams that were deleted last, with the time in Unix
// milliseconds. A repeated delete is told from one of a team that has never been there by it;
// nothing else reads it.
func (e *Env) deletedFile() string { return filepath.Join(e.Home.Dir, "deleted.json") }

func (e *Env) deletedTeams() (map[string]int64, error) {
	m := map[string]int64{}
	data, err := regular.ReadFile(e.deletedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil && json.Unmarshal(data, &m) != nil {
		m = map[string]int64{} // it is a convenience: written anew
	}
	return m, err
}

// noteDeleted writes down that a team is being deleted, before its directory goes: a delete that
// is killed in between finds the team, and deletes it.
func (e *Env) noteDeleted(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, noteWait)
	defer cancel()
	lock, err := filelock.Lock(ctx, e.deletedFile()+".lock")
	if err != nil {
		return unwritable(e.deletedFile(), err)
	}
	defer func() { _ = lock.Unlock() }()
	m, err := e.deletedTeams()
	if err != nil {
		return unwritable(e.deletedFile(), err)
	}
	m[key] = nowMS()
	for len(m) > maxDeleted {
		oldest := key
		for k, at := range m {
			if at < m[oldest] {
				oldest = k
			}
		}
		delete(m, oldest)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(e.deletedFile(), append(data, '\n'), 0o600, true); err != nil {
		return unwritable(e.deletedFile(), err)
	}
	return nil
}

// wasDeleted reports whether a team of the name was deleted, and none has the name now.
func (e *Env) wasDeleted(key string) (bool, error) {
	if _, err := os.Lstat(e.Home.Team(key).Dir); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	m, err := e.deletedTeams()
	return m[key] != 0, err
}

// WasDeleted reports whether the team that is named, by its name or the environment, was deleted
// and none has its key now.
func (e *Env) WasDeleted(name string) (key string, was bool) {
	if name == "" {
		name = os.Getenv(team.EnvTeam)
	}
	if name == "" {
		return "", false
	}
	key, err := team.TeamKey(name)
	if err == nil {
		was, err = e.wasDeleted(key)
	}
	return key, was && err == nil
}

// DeletedBefore is the result of a delete that is repeated.
func DeletedBefore(key string) TeamDeleteOut {
	return TeamDeleteOut{Success: true, TeamName: key, Outcome: AlreadyDeleted, Message: fmt.Sprintf("Team %q was deleted before", key)}
}
