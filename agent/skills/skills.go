package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Limits of a skill.
const (
	maxFile        = 256 << 10
	maxName        = 64
	maxDescription = 1024
)

// Skill is one skill.
type Skill struct {
	Name        string
	Description string
	File        string // absolute path of its SKILL.md
	root        string // repository of the skill
}

// Project reports whether the skill came with the repository and is not the user's own.
func (s Skill) Project() bool { return s.root != "" }

// Broken is a directory with an unusable skill.
type Broken struct {
	File string
	Err  error
}

// Find reads the skills of the user's workspace, in the home directory of teamctl, and of a
// repository, "" for none, sorted by name. It does not follow links that lead out of the
// repository.
func Find(home, repo string) ([]Skill, []Broken) {
	var f finder
	f.in("", filepath.Join(home, "workspace", "skills"))
	if repo != "" {
		f.in(repo, filepath.Join(repo, ".agents", "skills"))
		f.in(repo, filepath.Join(repo, ".teamctl", "skills"))
	}
	slices.SortFunc(f.found, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return f.found, f.broken
}

type finder struct {
	found  []Skill
	broken []Broken
}

func (f *finder) in(root, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.broken = append(f.broken, Broken{dir, err})
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name(), "SKILL.md")
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			continue
		}
		s, _, err := load(root, file)
		switch {
		case err != nil:
			f.broken = append(f.broken, Broken{file, err})
		case slices.ContainsFunc(f.found, func(o Skill) bool { return strings.EqualFold(o.Name, s.Name) }):
		default:
			f.found = append(f.found, s)
		}
	}
}

// Load returns the text of a skill without its front matter, and the directory of the files that
// it may refer to.
func Load(s Skill) (text, dir string, err error) {
	_, text, err = load(s.root, s.File)
	return text, filepath.Dir(s.File), err
}

// load reads one SKILL.md; root is its repository, "" for the user's own.
func load(root, file string) (s Skill, text string, err error) {
	b, err := readHead(root, file, maxFile+1)
	if err != nil {
		return s, "", err
	}
	if len(b) > maxFile {
		return s, "", fmt.Errorf("it has more than %d kB", maxFile>>10)
	}
	head, text, err := frontMatter(string(b))
	if err != nil {
		return s, "", err
	}
	var meta struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(head), &meta); err != nil {
		return s, "", fmt.Errorf("front matter: %s", yaml.FormatError(err, false, false))
	}
	s = Skill{Name: strings.TrimSpace(meta.Name), Description: strings.Join(strings.Fields(meta.Description), " "), File: file, root: root}
	switch {
	case s.Name == "":
		return s, "", errors.New("front matter: name is missing")
	case len(s.Name) > maxName || strings.ContainsFunc(s.Name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_. ", r)
	}):
		return s, "", fmt.Errorf("front matter: invalid name %q", s.Name)
	case s.Description == "":
		return s, "", errors.New("front matter: description is missing")
	case len(s.Description) > maxDescription:
		return s, "", fmt.Errorf("front matter: description has %d bytes, at most %d", len(s.Description), maxDescription)
	}
	return s, text, nil
}

// frontMatter splits a text into the part between its two --- lines and the rest.
func frontMatter(text string) (head, body string, err error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", "", errors.New("it does not begin with front matter (---)")
	}
	if strings.HasPrefix(rest, "---\n") {
		return "", strings.TrimPrefix(rest, "---\n"), nil
	}
	head, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		head, ok = strings.CutSuffix(strings.TrimRight(rest, "\n"), "\n---")
	}
	if !ok {
		return "", "", errors.New("its front matter has no end (---)")
	}
	return head, strings.TrimLeft(body, "\n"), nil
}

// Allowed returns the skills that a filter permits.
func Allowed(all []Skill, f team.Filter) []Skill {
	return slices.DeleteFunc(slices.Clone(all), func(s Skill) bool { return !f.Allows(s.Name) })
}

// All lists every skill with its path, one a line: with their descriptions if that is at most most
// bytes.
func All(list []Skill, most int) string {
	if text := lines(list, false); len(text) <= most {
		return text
	}
	return lines(list, true)
}

func lines(list []Skill, brief bool) string {
	var out strings.Builder
	for _, s := range list {
		if brief {
			fmt.Fprintf(&out, "- %s (%s)\n", s.Name, s.File)
		} else {
			fmt.Fprintf(&out, "- %s: %s (%s)\n", s.Name, s.Description, s.File)
		}
	}
	return out.String()
}

// Listing returns the part of a prompt that lists skills, of at most most bytes. Skills that do
// not fit are listed without description, then omitted; the last line gives their number and says
// how to list them.
func Listing(list []Skill, most int, how string) string {
	if len(list) == 0 || most <= 0 {
		return ""
	}
	if text := All(list, most); len(text) <= most {
		return text
	}
	var out strings.Builder
	for i, s := range list {
		line := fmt.Sprintf("- %s\n", s.Name)
		more := fmt.Sprintf("- %d more: %s\n", len(list)-i, how)
		if out.Len()+len(line)+len(more) > most {
			if out.Len()+len(more) <= most {
				out.WriteString(more)
			}
			break
		}
		out.WriteString(line)
	}
	return out.String()
}

// readHead reads at most n bytes of a regular file; with a root, links cannot lead out of it.
func readHead(root, file string, n int64) (b []byte, err error) {
	var f *os.File
	if root == "" {
		f, err = regular.Open(file)
	} else {
		f, err = openIn(root, file)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, n))
}

func openIn(root, file string) (*os.File, error) {
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only used for its names
	f, err := r.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", file, regular.ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
