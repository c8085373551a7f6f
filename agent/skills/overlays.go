package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// MaxOverlay is the maximum number of bytes used of one overlay.
const MaxOverlay = 32 << 10

// Overlay is a text that is part of an agent's instructions.
type Overlay struct {
	Name    string // SOUL.md, AGENTS.md
	File    string // absolute path
	Text    string
	Cut     bool // only its beginning is used
	Project bool // from the repository, not from the user
}

// own lists the overlays of the user's workspace, in the order of the prompt.
var own = []string{"IDENTITY.md", "SOUL.md", "USER.md", "TOOLS.md"}

// Overlays reads the overlays of an agent that works in dir, which is in repo. spec is the id of
// the agent's spec, overlay its own directory below workspace/agents/SPEC, "" for that itself.
// Errors of single files are joined; the other overlays are returned.
func Overlays(home, spec, overlay, repo, dir string) ([]Overlay, error) {
	var out []Overlay
	var errs []error
	workspace := filepath.Join(home, "workspace")
	for _, name := range own {
		for _, file := range []string{filepath.Join(workspace, "agents", spec, overlay, name), filepath.Join(workspace, name)} {
			o, found, err := overlayOf("", name, file)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if found {
				out = append(out, o)
				break
			}
		}
	}
	for _, at := range downTo(repo, dir) {
		for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
			o, found, err := overlayOf(repo, name, filepath.Join(at, name))
			if err != nil {
				errs = append(errs, err)
				break
			}
			if found {
				o.Project = true
				out = append(out, o)
				break
			}
		}
	}
	return out, errors.Join(errs...)
}

// overlayOf reads one overlay. An empty file is not an overlay.
func overlayOf(root, name, file string) (Overlay, bool, error) {
	b, err := readHead(root, file, MaxOverlay+1)
	if errors.Is(err, fs.ErrNotExist) {
		return Overlay{}, false, nil
	}
	if err != nil {
		return Overlay{}, false, fmt.Errorf("overlay: %w", err)
	}
	o := Overlay{Name: name, File: file, Cut: len(b) > MaxOverlay}
	o.Text = strings.TrimSpace(strings.ToValidUTF8(string(b[:min(len(b), MaxOverlay)]), ""))
	return o, o.Text != "", nil
}

// downTo returns the directories from root down to dir, or only root if dir is not below it.
func downTo(root, dir string) []string {
	if root == "" {
		return nil
	}
	out := []string{root}
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return out
	}
	at := root
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		at = filepath.Join(at, part)
		out = append(out, at)
	}
	return out
}
