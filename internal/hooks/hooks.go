package hooks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Kind is what a hook is asked about.
type Kind string

// The kinds of hooks.
const (
	TeammateIdle    Kind = "TeammateIdle"
	TaskCreated     Kind = "TaskCreated"
	TaskCompleted   Kind = "TaskCompleted"
	TeammateExited  Kind = "TeammateExited"
	MessageAccepted Kind = "MessageAccepted"
)

// Kinds are all kinds, in the order of the documents.
func Kinds() []Kind {
	return []Kind{TaskCreated, TaskCompleted, TeammateIdle, TeammateExited, MessageAccepted}
}

// Limits of one hook's time.
const (
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute
)

// Hook is one command that bash runs.
type Hook struct {
	Command string
	Timeout time.Duration // 0: DefaultTimeout
}

// Set is hooks by what they are asked about; those of a kind are asked in order.
type Set map[Kind][]Hook

// hookJSON is a Hook as it is written: {command, timeout}, or the command alone.
type hookJSON struct {
	Command string `json:"command"`
	Timeout string `json:"timeout,omitempty"`
}

// MarshalJSON writes the timeout as a Go duration.
func (r Hook) MarshalJSON() ([]byte, error) {
	out := hookJSON{Command: r.Command}
	if r.Timeout != 0 {
		out.Timeout = r.Timeout.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads {command, timeout} or a string.
func (r *Hook) UnmarshalJSON(data []byte) error {
	var in hookJSON
	if err := json.Unmarshal(data, &in.Command); err != nil {
		in = hookJSON{}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			return fmt.Errorf("a hook is a command, or {command, timeout}: %w", err)
		}
	}
	made, err := NewHook(in.Command, in.Timeout)
	*r = made
	return err
}

// NewHook checks a command and its timeout, a Go duration or empty.
func NewHook(command, timeout string) (Hook, error) {
	r := Hook{Command: command}
	if strings.TrimSpace(command) == "" {
		return r, fmt.Errorf("a hook has no command")
	}
	if timeout == "" {
		return r, nil
	}
	d, err := time.ParseDuration(timeout)
	if err != nil || d <= 0 || d > MaxTimeout {
		return r, fmt.Errorf("invalid timeout %q: use a duration such as 30s, at most %s", timeout, MaxTimeout)
	}
	r.Timeout = d
	return r, nil
}

// ParseKind checks the name of a kind.
func ParseKind(name string) (Kind, error) {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		if string(k) == name {
			return k, nil
		}
		names = append(names, string(k))
	}
	err := team.Errorf(team.CodeInvalid, "there are no hooks for %q", name)
	if near := team.Closest(name, names); near != "" {
		return "", err.WithHint("did you mean " + near + "?")
	}
	return "", err.WithHint(strings.Join(names, ", "))
}

// Commands are the commands of all hooks, in the order of the kinds.
func (s Set) Commands() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s)) {
		for _, r := range s[k] {
			out = append(out, string(k)+": "+r.Command)
		}
	}
	return out
}

// Supplied is the hooks that a team has from its file, as the ledger keeps them.
type Supplied struct {
	Hooks Set `json:"hooks,omitempty"`
	// FromRepo: they came with the repository, so they are asked only while Consent
	// is the hash of them.
	FromRepo bool   `json:"fromRepo,omitempty"`
	Repo     string `json:"repo,omitempty"`
	Consent  string `json:"consent,omitempty"`
}

// Setting is the name of Supplied among a team's settings in the ledger.
const Setting = "hooks"

// Allowed reports whether the hooks may run now.
func (s Supplied) Allowed() bool {
	return !s.FromRepo || s.Consent != "" && s.Consent == s.Hash()
}

// maxHashed bounds the files of the repository that a consent covers, in bytes each.
const maxHashed = 4 << 20

// Hash is what a consent is given to: the commands, and the files of the repository
// that they name, as they are now.
func (s Supplied) Hash() string {
	h := sha256.New()
	for _, c := range s.Hooks.Commands() {
		_, _ = fmt.Fprintf(h, "command %d %s\n", len(c), c) // writing to a hash never fails
	}
	for _, path := range s.Files() {
		_, _ = fmt.Fprintf(h, "file %s %s\n", path, fileHash(filepath.Join(s.Repo, path)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Files are the files of the repository that the commands name, relative to it.
func (s Supplied) Files() []string {
	seen := map[string]bool{}
	for _, list := range s.Hooks {
		for _, r := range list {
			for _, word := range strings.FieldsFunc(r.Command, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`;|&()<>=$", c) }) {
				path := word
				if !filepath.IsAbs(path) {
					path = filepath.Join(s.Repo, path)
				}
				rel, err := filepath.Rel(s.Repo, path)
				if err != nil || s.Repo == "" || !filepath.IsLocal(rel) || rel == "." {
					continue
				}
				if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
					seen[filepath.ToSlash(rel)] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// fileHash is the hash of a file's content; one that cannot be read has a hash
// that no content has.
func fileHash(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unreadable"
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxHashed+1)); err != nil || n > maxHashed {
		return "unreadable"
	}
	return hex.EncodeToString(h.Sum(nil))
}
