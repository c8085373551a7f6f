package view

import (
	"slices"
	"strconv"
	"strings"
)

// FileDiff has the changes of one file.
type FileDiff struct {
	Path    string     `json:"path"`
	From    string     `json:"from,omitempty"` // previous path, if it differs
	State   string     `json:"state"`          // changed, new, deleted, renamed, mode, binary
	Added   int        `json:"added"`
	Removed int        `json:"removed"`
	Lines   []DiffLine `json:"lines"`
	Old     string     `json:"-"` // blob before the change, abbreviated; "" if git names none
}

// DiffLine is a line of a diff. Old and New are its line numbers in the two files, 0 if a file
// lacks it.
type DiffLine struct {
	Kind DiffKind `json:"kind"`
	Old  int      `json:"old,omitempty"`
	New  int      `json:"new,omitempty"`
	Text string   `json:"text"` // without the sign
}

// DiffKind is the kind of a line of a diff.
type DiffKind byte

// Kinds of lines.
const (
	Context DiffKind = ' '
	Added   DiffKind = '+'
	Removed DiffKind = '-'
	Hunk    DiffKind = '@'  // the heading of a hunk
	NoEnd   DiffKind = '\\' // the file lacks a line break at its end
)

// ParseDiff parses a patch written by git. It skips unknown parts and never fails, since file
// names and lines come from agents.
func ParseDiff(patch string) []FileDiff {
	var files []FileDiff
	var f *FileDiff
	old, new, leftOld, leftNew := 0, 0, 0, 0
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		if f != nil && (leftOld > 0 || leftNew > 0) {
			text := ""
			if line != "" {
				text = line[1:]
			}
			switch {
			case strings.HasPrefix(line, "+") && leftNew > 0:
				f.Lines = append(f.Lines, DiffLine{Kind: Added, New: new, Text: text})
				f.Added++
				new, leftNew = new+1, leftNew-1
				continue
			case strings.HasPrefix(line, "-") && leftOld > 0:
				f.Lines = append(f.Lines, DiffLine{Kind: Removed, Old: old, Text: text})
				f.Removed++
				old, leftOld = old+1, leftOld-1
				continue
			case (line == "" || line[0] == ' ') && leftOld > 0 && leftNew > 0:
				f.Lines = append(f.Lines, DiffLine{Kind: Context, Old: old, New: new, Text: text})
				old, new, leftOld, leftNew = old+1, new+1, leftOld-1, leftNew-1
				continue
			case strings.HasPrefix(line, `\`):
				f.Lines = append(f.Lines, DiffLine{Kind: NoEnd, Text: strings.TrimSpace(text)})
				continue
			}
			leftOld, leftNew = 0, 0 // the hunk is shorter than its heading says
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files = append(files, FileDiff{State: "changed", Path: gitPath(line)})
			f = &files[len(files)-1]
		case f == nil:
		case strings.HasPrefix(line, "@@ "):
			var ok bool
			if old, leftOld, new, leftNew, ok = hunk(line); ok {
				f.Lines = append(f.Lines, DiffLine{Kind: Hunk, Old: old, New: new, Text: line})
			}
		case strings.HasPrefix(line, `\`):
			f.Lines = append(f.Lines, DiffLine{Kind: NoEnd, Text: strings.TrimSpace(line[1:])})
		case strings.HasPrefix(line, "index "):
			f.Old, _, _ = strings.Cut(line[len("index "):], "..")
		case strings.HasPrefix(line, "new file mode"):
			f.State = "new"
		case strings.HasPrefix(line, "deleted file mode"):
			f.State = "deleted"
		case strings.HasPrefix(line, "new mode") && f.State == "changed":
			f.State = "mode"
		case strings.HasPrefix(line, "rename from "):
			f.State, f.From = "renamed", unquote(line[len("rename from "):])
		case strings.HasPrefix(line, "rename to "):
			f.Path = unquote(line[len("rename to "):])
		case strings.HasPrefix(line, "--- ") && f.State == "deleted":
			f.Path = side(line[4:], f.Path)
		case strings.HasPrefix(line, "+++ ") && f.State != "deleted":
			f.Path = side(line[4:], f.Path)
			if f.State == "mode" {
				f.State = "changed"
			}
		case strings.HasPrefix(line, "Binary files ") || line == "GIT binary patch":
			f.State = "binary"
		}
	}
	return files
}

// PatchOf returns the part of a patch that has the changes of one of its files, "" without one.
func PatchOf(patch string, files []FileDiff, path string) string {
	at := slices.IndexFunc(files, func(f FileDiff) bool { return f.Path == path })
	if at < 0 {
		return ""
	}
	const begins = "diff --git "
	n, from := -1, -1
	for end := 0; end < len(patch); {
		line := patch[end:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		if strings.HasPrefix(line, begins) { // lines of a file have a sign before them
			if n++; n == at {
				from = end
			} else if n == at+1 {
				return patch[from:end]
			}
		}
		end += len(line)
	}
	if from < 0 {
		return ""
	}
	return patch[from:]
}

// LineOf returns the index of the line that a comment is about, the last one of several, -1 for
// the whole file and for lines that have changed since.
func (f FileDiff) LineOf(c Comment) int {
	if c.First == 0 || c.Changed {
		return -1
	}
	return slices.IndexFunc(f.Lines, func(l DiffLine) bool {
		if c.Old {
			return l.Old == c.Last && l.Kind == Removed
		}
		return l.New == c.Last && (l.Kind == Added || l.Kind == Context)
	})
}

// gitPath returns the path in the heading of a file's diff, if both sides have the same.
func gitPath(line string) string {
	rest := line[len("diff --git "):]
	if strings.HasPrefix(rest, `"`) {
		if i := strings.LastIndex(rest, ` "`); i > 0 {
			return side(rest[i+1:], "")
		}
		return side(rest, "")
	}
	if n := len(rest); n > 4 && n%2 == 1 && strings.TrimPrefix(rest[:n/2], "a/") == strings.TrimPrefix(rest[n/2+1:], "b/") {
		return strings.TrimPrefix(rest[:n/2], "a/")
	}
	if i := strings.LastIndex(rest, " b/"); i >= 0 {
		return rest[i+3:]
	}
	return rest
}

// side returns the path of one side of a diff; for /dev/null it returns other.
func side(s, other string) string {
	s = unquote(strings.TrimSuffix(s, "\t"))
	if s == "/dev/null" {
		return other
	}
	if len(s) > 2 && (s[:2] == "a/" || s[:2] == "b/") {
		return s[2:]
	}
	return s
}

// unquote unquotes a path quoted by git.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	if p, err := strconv.Unquote(s); err == nil {
		return p
	}
	return s[1 : len(s)-1]
}

// hunk parses "@@ -1,2 +3,4 @@".
func hunk(line string) (old, oldN, new, newN int, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || f[3] != "@@" || !strings.HasPrefix(f[1], "-") || !strings.HasPrefix(f[2], "+") {
		return
	}
	old, oldN, a := span(f[1][1:])
	new, newN, b := span(f[2][1:])
	return old, oldN, new, newN, a && b
}

func span(s string) (from, n int, ok bool) {
	first, count, given := strings.Cut(s, ",")
	from, err := strconv.Atoi(first)
	n = 1
	if err == nil && given {
		n, err = strconv.Atoi(count)
	}
	return from, n, err == nil && from >= 0 && n >= 0
}
