package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// consent is one entry of consent.json: commands of a repository, by their hash, that a person has
// allowed on this machine.
type consent struct {
	At    int64    `json:"at"`
	Repo  string   `json:"repo,omitempty"`
	Setup []string `json:"commands"`
}

func (e *Env) consentFile() string { return filepath.Join(e.Home.Dir, "consent.json") }

func (e *Env) consents() (map[string]consent, error) {
	m := map[string]consent{}
	data, err := regular.ReadFile(e.consentFile())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "read %s: %w", e.consentFile(), err).WithReason(team.ReasonConsentUnreadable).WithHint("move it aside")
	}
	return m, nil
}

// allow records a consent.
func (e *Env) allow(ctx context.Context, hash string, c consent) error {
	if err := os.MkdirAll(e.Home.Dir, 0o700); err != nil { // there may be no team yet
		return unwritable(e.consentFile(), err)
	}
	lock, err := filelock.Lock(ctx, e.consentFile()+".lock")
	if err != nil {
		return unwritable(e.consentFile(), err)
	}
	defer func() { _ = lock.Unlock() }()
	m, err := e.consents()
	if err != nil {
		return err
	}
	m[hash] = c
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(e.consentFile(), append(data, '\n'), 0o600, true); err != nil {
		return unwritable(e.consentFile(), err)
	}
	return nil
}

// consented returns the hash if commands of a repository may run on this machine, else "". With
// allow, a person consents now.
func (e *Env) consented(ctx context.Context, c Caller, hash, repo string, commands []string, allow bool) (string, error) {
	if allow && !c.Person {
		return "", team.Errorf(team.CodeDenied, "only a person allows commands of a repository").WithReason(team.ReasonRole)
	}
	if allow {
		if err := e.allow(ctx, hash, consent{At: nowMS(), Repo: repo, Setup: commands}); err != nil {
			return "", err
		}
	}
	m, err := e.consents()
	if err != nil {
		return "", err
	}
	if _, ok := m[hash]; ok {
		return hash, nil
	}
	return "", nil
}

// Agreed reports whether the commands of a file in a repository may run on this machine: a person
// has consented to exactly these commands before, or consents now with agree.
func (e *Env) Agreed(ctx context.Context, c Caller, repo string, commands []string, agree bool) (bool, error) {
	data, err := json.Marshal(commands)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(append([]byte("file "), data...))
	hash := hex.EncodeToString(sum[:])
	got, err := e.consented(ctx, c, hash, repo, commands, agree)
	return got == hash, err
}
