package tools

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type readIn struct {
	Path   string `json:"path" jsonschema:"file to read, relative to the worktree or absolute"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1; negative counts from the end"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines, at most 2000"`
}

type lsIn struct {
	Path string `json:"path,omitempty" jsonschema:"directory; default the worktree"`
}

func paths(list ...string) Subject {
	for i, p := range list {
		if p == "" {
			list[i] = "."
		}
	}
	return Subject{Paths: list}
}

func (s *Space) readTool() Tool {
	return Typed("read", "Read a text file. Lines are shown with their numbers. A file must be read before it can be changed.", Read, true,
		func(in readIn) Subject { return paths(in.Path) },
		func(_ context.Context, _ Call, in readIn) (Out, error) {
			p, b, err := s.load(in.Path)
			if err != nil {
				return Out{}, err
			}
			if binary(b) {
				return failed("%s is a binary file of %d bytes: it is not shown.", in.Path, len(b)), nil
			}
			seen := s.saw(p, b)
			out, err := showLines(in, string(b))
			out.Seen = seen
			return out, err
		})
}

// showLines returns the requested lines with numbers.
func showLines(in readIn, text string) (Out, error) {
	if text == "" {
		return Out{Text: "[the file is empty]"}, nil
	}
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first := max(in.Offset, 1)
	if in.Offset < 0 {
		first = max(1, len(lines)+in.Offset+1)
	}
	if first > len(lines) {
		return failed("%s has %d lines: there is no line %d.", in.Path, len(lines), first), nil
	}
	limit := MaxLines
	if in.Limit > 0 {
		limit = min(in.Limit, MaxLines)
	}
	var out strings.Builder
	next := first
	for ; next <= len(lines) && next < first+limit && out.Len() < MaxBytes-maxLine-64; next++ {
		fmt.Fprintf(&out, "%6d\t%s\n", next, cutLine(strings.TrimSuffix(lines[next-1], "\r")))
	}
	if next <= len(lines) {
		fmt.Fprintf(&out, "[lines %d to %d of %d; go on with offset %d]", first, next-1, len(lines), next)
	}
	return Out{Text: strings.TrimSuffix(out.String(), "\n")}, nil
}

func (s *Space) lsTool() Tool {
	return Typed("ls", "List a directory: names, with / behind directories, @ behind links, and the sizes of files.", Read, true,
		func(in lsIn) Subject { return paths(in.Path) },
		func(ctx context.Context, _ Call, in lsIn) (Out, error) {
			rules, err := s.rules(ctx)
			if err != nil {
				return Out{}, err
			}
			p, err := s.locate(in.Path)
			if err != nil {
				return Out{}, err
			}
			if p.where == Forbidden {
				return failed("%s may not be read", in.Path), nil
			}
			list, err := s.entries(p)
			if err != nil {
				return failed("%s: %s", shown(in.Path), plainPathError(err)), nil
			}
			slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			var out strings.Builder
			for _, e := range list {
				if s.hides(rules, filepath.Join(p.abs, e.Name())) {
					continue
				}
				switch info, err := e.Info(); {
				case e.IsDir():
					fmt.Fprintf(&out, "%s/\n", e.Name())
				case e.Type()&fs.ModeSymlink != 0:
					fmt.Fprintf(&out, "%s@\n", e.Name())
				case err != nil || !e.Type().IsRegular():
					fmt.Fprintf(&out, "%s\n", e.Name())
				default:
					fmt.Fprintf(&out, "%s  %d\n", e.Name(), info.Size())
				}
			}
			if out.Len() == 0 {
				return Out{Text: "[the directory is empty]"}, nil
			}
			return s.fit("ls", strings.TrimSuffix(out.String(), "\n"))
		})
}

func (s *Space) entries(p place) ([]fs.DirEntry, error) {
	if p.where == Inside {
		f, err := s.root.Open(p.rel)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return f.ReadDir(-1)
	}
	return os.ReadDir(p.abs)
}

// hides reports whether a listing omits a file, given without links: no mode, or a rule of the
// team, permits opening it.
func (s *Space) hides(r Rules, abs string) bool {
	return s.whereIs(abs) == Forbidden || r.hides(s.dir, abs)
}

func shown(path string) string {
	if path == "" {
		return "."
	}
	return path
}
