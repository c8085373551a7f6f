package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/teamctl/teamctl/internal/atomicfile"
)

type writeIn struct {
	Path    string `json:"path" jsonschema:"file to write, relative to the worktree"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

type editIn struct {
	Path  string     `json:"path" jsonschema:"file to change, relative to the worktree"`
	Edits []editPart `json:"edits" jsonschema:"changes, made in this order, all of them or none"`
}

type editPart struct {
	Old string `json:"old" jsonschema:"text to replace, which must be in the file exactly once"`
	New string `json:"new" jsonschema:"text that takes its place"`
	All bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

func (s *Space) writeTool() Tool {
	return Typed("write", "Create a file, or replace the whole of one that was read before.", Edit, false,
		func(in writeIn) Subject { return paths(in.Path) },
		func(ctx context.Context, _ Call, in writeIn) (Out, error) {
			p, old, mode, err := s.target(ctx, "write", in.Path)
			if err != nil {
				return Out{}, err
			}
			if mode == 0 {
				mode = 0o644
				if dir := path.Dir(p.rel); p.where == Inside && dir != "." {
					if err := s.root.MkdirAll(dir, 0o755); err != nil {
						return failed("%s: %s", in.Path, plainPathError(err)), nil
					}
				}
			} else if err := s.fresh(in.Path, p, old); err != nil {
				return Out{}, err
			}
			return s.store(in.Path, p, old, []byte(in.Content), mode)
		})
}

func (s *Space) editTool() Tool {
	return Typed("edit", "Change parts of a file that was read before. Each old text must be in the file exactly once, unless all is set.", Edit, false,
		func(in editIn) Subject { return paths(in.Path) },
		func(ctx context.Context, _ Call, in editIn) (Out, error) {
			p, old, mode, err := s.target(ctx, "edit", in.Path)
			if err != nil {
				return Out{}, err
			}
			if mode == 0 {
				return failed("%s: no such file; create it with write", in.Path), nil
			}
			if binary(old) {
				return failed("%s is a binary file", in.Path), nil
			}
			if err := s.fresh(in.Path, p, old); err != nil {
				return Out{}, err
			}
			if len(in.Edits) == 0 {
				return failed("edits is empty"), nil
			}
			content := string(old)
			for i, e := range in.Edits {
				if content, err = replace(content, e); err != nil {
					return failed("%s: edit %d of %d: %s. Nothing was changed.", in.Path, i+1, len(in.Edits), err), nil
				}
			}
			return s.store(in.Path, p, old, []byte(content), mode)
		})
}

// target returns the file to be written: its content and mode, 0 if it does not exist.
func (s *Space) target(ctx context.Context, tool, name string) (p place, content []byte, mode fs.FileMode, err error) {
	if p, err = s.locate(name); err != nil {
		return p, nil, 0, err
	}
	var info fs.FileInfo
	switch p.where {
	case Inside:
		if slices.Contains(strings.Split(p.rel, "/"), ".git") {
			return p, nil, 0, wrongf("%s is git's own: use git in the shell", name)
		}
		info, err = s.root.Lstat(p.rel)
	case Outside:
		r, rerr := s.rules(ctx)
		if rerr != nil {
			return p, nil, 0, rerr
		}
		if _, ok := r.opens(s.dir, tool, p.abs); !ok {
			return p, nil, 0, wrongf("%s is outside the worktree: it may not be written", name)
		}
		info, err = os.Lstat(p.abs)
	case Readable, Forbidden:
		return p, nil, 0, wrongf("%s may not be written", name)
	}
	switch {
	case os.IsNotExist(err):
		return p, nil, 0, nil
	case err != nil:
		return p, nil, 0, wrongf("%s: %s", name, plainPathError(err))
	case info.IsDir():
		return p, nil, 0, wrongf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return p, nil, 0, wrongf("%s is not a regular file", name)
	}
	_, content, err = s.load(name)
	return p, content, info.Mode().Perm(), err
}

// store writes a file such that after a crash it is the old one or the new one.
func (s *Space) store(name string, p place, old, content []byte, mode fs.FileMode) (Out, error) {
	if bytes.Equal(old, content) && old != nil {
		return failed("%s is as it was: the new text is the same", name), nil
	}
	var dir *os.Root
	var err error
	shown := p.rel
	if p.where == Inside {
		dir, err = s.root.OpenRoot(path.Dir(p.rel))
	} else {
		shown = p.abs
		dir, err = os.OpenRoot(path.Dir(p.abs))
	}
	if err == nil {
		err = errors.Join(atomicfile.WriteRoot(dir, path.Base(p.abs), content, mode, true), dir.Close())
	}
	if err != nil {
		return failed("%s: %s", name, plainPathError(err)), nil
	}
	seen := s.saw(p, content)
	diff := udiff.Unified("a/"+shown, "b/"+shown, string(old), string(content))
	plus, minus := counts(diff)
	note := fmt.Sprintf("%s +%d -%d", shown, plus, minus)
	return Out{Text: "Wrote " + note + ".", Note: note, Diff: diff, Paths: []string{shown}, Seen: seen}, nil
}

// counts returns the number of lines that a unified diff adds and removes.
func counts(diff string) (plus, minus int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			plus++
		case strings.HasPrefix(line, "-"):
			minus++
		}
	}
	return plus, minus
}

// replace carries out one edit of a text. No byte outside the match changes.
func replace(content string, e editPart) (string, error) {
	switch e.Old {
	case "":
		return "", fmt.Errorf("old is empty: to replace a whole file use write")
	case e.New:
		return "", fmt.Errorf("old and new are the same")
	}
	if !strings.Contains(e.Old, "\r\n") {
		e.New = withEnds(e.New, content)
	}
	switch at := occurrences(content, e.Old); {
	case len(at) == 1, len(at) > 1 && e.All:
		return strings.ReplaceAll(content, e.Old, e.New), nil
	case len(at) > 1:
		return "", fmt.Errorf("old is in the file %d times, at lines %s: add lines around it, or set all", len(at), linesOf(content, at))
	}
	found := loosely(content, e.Old)
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("old is not in the file%s", nearest(content, e.Old))
	case len(found) > 1 && !e.All:
		var at []int
		for _, f := range found {
			at = append(at, f[0])
		}
		return "", fmt.Errorf("old is in the file %d times but for line ends and blanks, at lines %s: add lines around it", len(found), linesOf(content, at))
	}
	var out strings.Builder
	end := 0
	for _, f := range found {
		if f[0] < end {
			continue // it overlaps the previous one
		}
		out.WriteString(content[end:f[0]])
		out.WriteString(e.New)
		end = f[1]
	}
	out.WriteString(content[end:])
	return out.String(), nil
}

// occurrences returns the offsets of a text. They may overlap: in "}\n}\n}\n" it is ambiguous
// which two lines "}\n}\n" means.
func occurrences(content, text string) (out []int) {
	for at := 0; ; {
		i := strings.Index(content[at:], text)
		if i < 0 {
			return out
		}
		out = append(out, at+i)
		at += i + 1
	}
}

// linesOf returns the line numbers of offsets, at most ten.
func linesOf(content string, at []int) string {
	var out []string
	for _, i := range at[:min(len(at), 10)] {
		out = append(out, fmt.Sprint(1+strings.Count(content[:i], "\n")))
	}
	return strings.Join(out, ", ")
}

// loosely finds whole lines that differ from those of a text only in line ends and trailing
// blanks. A result is a range of bytes; it includes the last line's end if the text does.
func loosely(content, text string) (out [][2]int) {
	want := strings.Split(text, "\n")
	ends := want[len(want)-1] == ""
	if ends {
		want = want[:len(want)-1]
	}
	trim := func(l string) string { return strings.TrimRight(l, " \t\r\n") }
	if !slices.ContainsFunc(want, func(l string) bool { return trim(l) != "" }) {
		return nil // any empty line would match
	}
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1] // no line follows the last line's end
	}
	start := 0
	if strings.HasPrefix(content, "\ufeff") {
		start = len("\ufeff")
	}
	offset := 0
	for i := range lines {
		from := offset
		offset += len(lines[i])
		if i+len(want) > len(lines) {
			break
		}
		ok := true
		for j, w := range want {
			l := lines[i+j]
			if i+j == 0 {
				l = l[start:]
			}
			if trim(l) != trim(w) {
				ok = false
				break
			}
		}
		if !ok {
			continue
		}
		to := from
		for j := range want {
			to += len(lines[i+j])
		}
		if !ends {
			to -= len(lines[i+len(want)-1]) - len(strings.TrimRight(lines[i+len(want)-1], "\r\n"))
		}
		if i == 0 {
			from += start
		}
		out = append(out, [2]int{from, to})
	}
	return out
}

// withEnds converts the line ends of a text to those of its file.
func withEnds(text, content string) string {
	if crlf := strings.Count(content, "\r\n"); crlf == 0 || 2*crlf < strings.Count(content, "\n") {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// nearest returns the lines of a file that are most similar to those of a text.
func nearest(content, text string) string {
	want := strings.Split(strings.Trim(text, "\n"), "\n")
	lines := strings.Split(content, "\n")
	best, score := -1, 0
	for i := range lines {
		n := 0
		for j, w := range want {
			if i+j < len(lines) && strings.TrimSpace(w) != "" {
				n += alike(strings.TrimSpace(lines[i+j]), strings.TrimSpace(w))
			}
		}
		if n > score {
			best, score = i, n
		}
	}
	if best < 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("; the nearest lines are:\n")
	for i := best; i < min(best+min(len(want), 10), len(lines)); i++ {
		fmt.Fprintf(&out, "%6d\t%s\n", i+1, cutLine(strings.TrimSuffix(lines[i], "\r")))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// alike scores the similarity of two lines: all of it if they are equal, or a common beginning and
// end of more than half.
func alike(a, b string) int {
	if a == b {
		return 4
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < len(a)-n && m < len(b)-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	switch {
	case 4*(n+m) >= 3*max(len(a), len(b)):
		return 2
	case 2*(n+m) > max(len(a), len(b)):
		return 1
	}
	return 0
}
