package team

import (
	"maps"
	"slices"
	"time"
)

// Furnishing is what the worktrees of one repository get besides their commit.
type Furnishing struct {
	Copy     []string      `json:"copy,omitempty"`
	Link     []string      `json:"link,omitempty"`
	Setup    []string      `json:"setup,omitempty"`
	Teardown []string      `json:"teardown,omitempty"`
	Limit    time.Duration `json:"limit,omitempty"` // of each command
}

// Bootstrap is what every new worktree of the team gets besides its commit.
type Bootstrap struct {
	Furnishing
	Repos map[string]Furnishing `json:"repos,omitempty"` // what those of a further repository get instead
	// FromRepo: the commands came with the repository, so they run only while
	// Consent is the hash of them.
	FromRepo bool   `json:"fromRepo,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Consent  string `json:"consent,omitempty"`
}

// Allowed reports whether the commands may run.
func (b Bootstrap) Allowed() bool { return !b.FromRepo || b.Hash != "" && b.Consent == b.Hash }

// Of is what the worktrees of a repository get, by the name that the team has for it,
// "" for its first.
func (b Bootstrap) Of(repo string) Furnishing {
	if own, ok := b.Repos[repo]; ok && repo != "" {
		return own
	}
	return b.Furnishing
}

// Empty reports that no worktree gets anything.
func (b Bootstrap) Empty() bool {
	something := func(f Furnishing) bool { return len(f.Copy)+len(f.Link)+len(f.Setup)+len(f.Teardown) > 0 }
	return !something(b.Furnishing) && !slices.ContainsFunc(slices.Collect(maps.Values(b.Repos)), something)
}

// Commands are the setup commands of all repositories, then the teardown commands,
// each once.
func (b Bootstrap) Commands() (setup, teardown []string) {
	add := func(to []string, from []string) []string {
		for _, run := range from {
			if !slices.Contains(to, run) {
				to = append(to, run)
			}
		}
		return to
	}
	setup, teardown = add(nil, b.Setup), add(nil, b.Teardown)
	for _, name := range slices.Sorted(maps.Keys(b.Repos)) {
		setup, teardown = add(setup, b.Repos[name].Setup), add(teardown, b.Repos[name].Teardown)
	}
	return setup, teardown
}
