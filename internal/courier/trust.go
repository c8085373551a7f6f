package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Trust is the user's decision about an agent's working directory. It is read from the program's
// own configuration, which only the program writes.
type Trust struct {
	Known   bool   // there is an answer, or the program needs none
	Trusted bool   // the user trusts it, or the repository of which it is a work tree
	Said    string // all answers: it changes with each new one
	Dir     string // the directory whose files change with an answer
}

// askingFile exists in the bundle while a program runs that only asks whether the directory is
// trusted; it holds the generation.
const askingFile = "asking"

// Ask records that a program runs that only asks about trust, and returns a function that removes
// the record. The rest of that program's screen means nothing.
func Ask(b team.Bundle, generation string) (over func(), err error) {
	path := filepath.Join(string(b), askingFile)
	if err := atomicfile.Write(path, []byte(generation+"\n"), 0o600, false); err != nil {
		return nil, fmt.Errorf("note that the question of trust is open: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil // the next start replaces a file that is left
}

// asking reports whether such a program is running.
func (l *looker) asking() bool {
	data, err := regular.ReadFile(filepath.Join(string(l.f.Bundle), askingFile))
	return err == nil && strings.TrimSpace(string(data)) == l.f.Generation
}

// GeminiTrust reads the files of Gemini CLI, whose environment getenv returns. Gemini CLI looks
// for the answer only at the directory and its parents; GeminiTrust extends the trust of a
// repository to its work trees.
func GeminiTrust(ctx context.Context, dir string, getenv func(string) string) (Trust, error) {
	home := getenv("GEMINI_CLI_HOME")
	if home == "" {
		home = getenv("HOME")
	}
	home = filepath.Join(home, ".gemini")
	file := getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
	if file == "" {
		file = filepath.Join(home, "trustedFolders.json")
	}
	t := Trust{Dir: filepath.Dir(file)}
	if getenv("GEMINI_RESTRICTED_MODE") == "true" || getenv("GEMINI_CLI_TRUST_WORKSPACE") != "" {
		t.Known = true
		return t, nil
	}
	system := getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
	if system == "" {
		system = "/etc/gemini-cli/settings.json"
	}
	asks := true
	for _, settings := range []string{filepath.Join(home, "settings.json"), system} { // the system's settings win
		var s struct {
			Security struct{ FolderTrust struct{ Enabled *bool } }
		}
		if err := readJSONC(settings, &s); err != nil {
			continue // the program reports that itself, and ignores the file
		}
		if on := s.Security.FolderTrust.Enabled; on != nil {
			asks = *on
		}
	}
	if !asks {
		t.Known = true
		return t, nil
	}
	levels := map[string]string{}
	if err := readJSONC(file, &levels); err != nil && !errors.Is(err, fs.ErrNotExist) { // the program may be writing it
		return t, fmt.Errorf("read %s: %w", file, err)
	}
	said, err := json.Marshal(levels)
	t.Said = string(said)
	t.Known, t.Trusted = geminiLevel(levels, dir)
	if !t.Known {
		for _, p := range RepositoryOf(ctx, dir) {
			if _, trusted := geminiLevel(levels, p); trusted {
				t.Known, t.Trusted = true, true
			}
		}
	}
	return t, err
}

// geminiLevel returns the answer of the longest rule that covers a directory.
func geminiLevel(levels map[string]string, dir string) (known, trusted bool) {
	longest := -1
	for rule, level := range levels {
		covers := rule
		if level == "TRUST_PARENT" {
			covers = filepath.Dir(rule)
		}
		rel, err := filepath.Rel(RealPath(covers), RealPath(dir))
		if err != nil || !filepath.IsLocal(rel) || len(rule) <= longest {
			continue
		}
		longest, known, trusted = len(rule), true, level != "DO_NOT_TRUST"
	}
	return known, trusted
}

// RepositoryOf returns the work tree that contains a directory, and the directory of the
// repository to which the work tree belongs; none outside a repository.
func RepositoryOf(ctx context.Context, dir string) []string {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir").Output()
	top, common, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !ok {
		return nil
	}
	return []string{top, filepath.Dir(common)}
}

// RealPath resolves the links of a path, if possible.
func RealPath(p string) string {
	if r, err := filepath.EvalSymlinks(p); err == nil {
		return r
	}
	return p
}

// readJSONC reads JSON with comments.
func readJSONC(path string, v any) error {
	data, err := regular.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = hujson.Standardize(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
