package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

type globIn struct {
	Pattern string `json:"pattern" jsonschema:"pattern of paths below the directory; ** is any number of directories"`
	Path    string `json:"path,omitempty" jsonschema:"directory; default the worktree"`
}

type grepIn struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression in Go's syntax (RE2), matched against each line"`
	Path       string `json:"path,omitempty" jsonschema:"file or directory; default the worktree"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files whose path below the directory, or whose name, fits this pattern"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty" jsonschema:"lines shown before and after each match, at most 20"`
}

func (s *Space) globTool() Tool {
	return Typed("glob", "Find files by a pattern of their paths. Files that git ignores are left out.", Read, true,
		func(in globIn) Subject { return paths(in.Path) },
		func(ctx context.Context, _ Call, in globIn) (Out, error) {
			if !doublestar.ValidatePattern(in.Pattern) {
				return failed("%q is not a valid pattern", in.Pattern), nil
			}
			var found []string
			err := s.files(ctx, in.Path, func(rel, _ string) error {
				if ok, _ := doublestar.Match(in.Pattern, rel); ok {
					found = append(found, filepath.Join(in.Path, rel))
				}
				return nil
			})
			if err != nil {
				return Out{}, err
			}
			if len(found) == 0 {
				return Out{Text: "[no file fits]"}, nil
			}
			slices.Sort(found)
			return s.fit("glob", strings.Join(found, "\n"))
		})
}

func (s *Space) grepTool() Tool {
	return Typed("grep", "Search files for lines that match a regular expression. Files that git ignores and binary files are left out.", Read, true,
		func(in grepIn) Subject { return paths(in.Path) },
		func(ctx context.Context, _ Call, in grepIn) (Out, error) {
			pattern := in.Pattern
			if in.IgnoreCase {
				pattern = "(?i)" + pattern
			}
			re, err := regexp.Compile(pattern)
			if err != nil {
				return failed("%s", err), nil
			}
			if in.Glob != "" && !doublestar.ValidatePattern(in.Glob) {
				return failed("%q is not a valid pattern", in.Glob), nil
			}
			in.Context = min(max(in.Context, 0), 20)
			var out strings.Builder
			errFull := errors.New("enough")
			search := func(rel, name string) error {
				if ok, _ := doublestar.Match(in.Glob, rel); in.Glob != "" && !ok {
					if ok, _ = doublestar.Match(in.Glob, filepath.Base(rel)); !ok {
						return nil
					}
				}
				_, b, err := s.load(name)
				if err != nil || binary(b) {
					return nil // unreadable files are skipped
				}
				matches(&out, re, name, string(b), in.Context)
				if out.Len() > 4<<20 {
					return errFull
				}
				return ctx.Err()
			}
			p, err := s.locate(in.Path)
			if err != nil {
				return Out{}, err
			}
			if info, serr := os.Stat(p.abs); serr == nil && info.Mode().IsRegular() {
				if p.where == Forbidden {
					return failed("%s may not be read", in.Path), nil
				}
				err = search(filepath.Base(p.abs), in.Path)
			} else {
				err = s.files(ctx, in.Path, func(rel, _ string) error { return search(rel, filepath.Join(in.Path, rel)) })
			}
			if err != nil && !errors.Is(err, errFull) {
				return Out{}, err
			}
			if out.Len() == 0 {
				return Out{Text: "[no line matches]"}, nil
			}
			return s.fit("grep", strings.TrimSuffix(out.String(), "\n"))
		})
}

// matches writes the matching lines of a text as NAME:LINE:TEXT, and their context as
// NAME-LINE-TEXT.
func matches(out *strings.Builder, re *regexp.Regexp, name, text string, around int) {
	lines := strings.Split(text, "\n")
	last := -1 // the last line written
	for i, l := range lines {
		l = strings.TrimSuffix(l, "\r")
		if i == len(lines)-1 && l == "" || !re.MatchString(l) {
			continue
		}
		from := max(i-around, last+1)
		if around > 0 && last >= 0 && from > last+1 {
			out.WriteString("--\n")
		}
		for n := from; n < i; n++ {
			fmt.Fprintf(out, "%s-%d-%s\n", name, n+1, cutLine(strings.TrimSuffix(lines[n], "\r")))
		}
		if i > last {
			fmt.Fprintf(out, "%s:%d:%s\n", name, i+1, cutLine(l))
			last = i
		}
		for n := i + 1; n <= min(i+around, len(lines)-1) && !re.MatchString(strings.TrimSuffix(lines[n], "\r")); n++ {
			if n == len(lines)-1 && lines[n] == "" {
				break
			}
			fmt.Fprintf(out, "%s-%d-%s\n", name, n+1, cutLine(strings.TrimSuffix(lines[n], "\r")))
			last = n
		}
	}
}

// files calls fn for every regular file below a directory that git does not ignore, with its path
// relative to the directory and its absolute path.
func (s *Space) files(ctx context.Context, path string, fn func(rel, abs string) error) error {
	p, err := s.locate(path)
	if err != nil {
		return err
	}
	if p.where == Forbidden {
		return wrongf("%s may not be read", shown(path))
	}
	rules, err := s.rules(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(p.abs)
	switch {
	case err != nil:
		return wrongf("%s: %s", shown(path), plainPathError(err))
	case !info.IsDir():
		return wrongf("%s is not a directory", shown(path))
	}
	each := func(rel string) error {
		abs := filepath.Join(p.abs, rel)
		if info, err := os.Lstat(abs); err != nil || !info.Mode().IsRegular() {
			return nil // the target of a link is found at its own place
		}
		if s.hides(rules, abs) {
			return nil
		}
		return fn(filepath.ToSlash(rel), abs)
	}
	list, err := gitFiles(ctx, p.abs)
	if err == nil {
		for _, rel := range list {
			if err := each(rel); err != nil {
				return err
			}
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return filepath.WalkDir(p.abs, func(abs string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && abs != p.abs:
			return nil // skip a directory that cannot be read
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return ctx.Err()
		}
		rel, err := filepath.Rel(p.abs, abs)
		if err != nil {
			return err
		}
		return each(rel)
	})
}

// gitFiles returns the files below a directory of a repository that git tracks or would add.
func gitFiles(ctx context.Context, dir string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	var list []string
	for name := range strings.SplitSeq(out.String(), "\x00") {
		if name != "" {
			list = append(list, name)
		}
	}
	return list, nil
}
