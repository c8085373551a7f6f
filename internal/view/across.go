package view

import (
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
)

// Across is a file as one of the members that change it has it, compared with its base.
type Across struct {
	Path    string
	Changes Changes // of the member
	Files   []FileDiff
	File    FileDiff // of the file, zero where there is none to show, see Why
	Marks   []bool   // its lines that others touch, too
	Same    []string // members that touch them
	Unknown []string // members whose lines cannot be compared with these
}

// AcrossMembers compares a file of members with each other.
func AcrossMembers(path string, all []Changes) (out []Across) {
	for _, c := range all {
		x := Across{Path: path, Changes: c, Files: ParseDiff(c.Patch)}
		if i := slices.IndexFunc(x.Files, func(f FileDiff) bool { return f.Path == path }); i >= 0 {
			x.File = x.Files[i]
		}
		x.Marks = make([]bool, len(x.File.Lines))
		out = append(out, x)
	}
	for i := range out {
		x := &out[i]
		for j, y := range out {
			if i == j || y.File.Path == "" || x.File.Path == "" {
				continue
			}
			lines, known := x.File.Crossed(y.File)
			switch {
			case !known && len(x.File.Lines) > 0 && len(y.File.Lines) > 0:
				x.Unknown = append(x.Unknown, y.Changes.Member)
			case slices.Contains(lines, true):
				x.Same = append(x.Same, y.Changes.Member)
			}
			for k, is := range lines {
				x.Marks[k] = x.Marks[k] || is
			}
		}
	}
	return out
}

// ReadAcross reads a file as a member and all others that change it have it. The error is that of the member; those
// of the others are why there is nothing of them.
func ReadAcross(ctx context.Context, t Source, path, member string) ([]Across, error) {
	read := func(name string) (Changes, error) {
		c, err := t.Changes(ctx, name, "")
		if err != nil {
			c = Changes{Member: name, Why: err.Error()}
		}
		return c, err
	}
	c, err := read(member)
	all := []Changes{c}
	for _, name := range slices.Sorted(slices.Values(c.Also[path])) {
		c, _ := read(name)
		all = append(all, c)
	}
	return AcrossMembers(path, all), err
}

// SameWords says which members touch the same lines, "" for none.
func (x Across) SameWords() string { return listed("same lines as ", x.Same) }

// UnknownWords says with which members it cannot be compared, "" for none.
func (x Across) UnknownWords() string { return listed("other base than ", x.Unknown) }

func listed(words string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return words + Clean(strings.Join(names, " "))
}

// Why says why there is no change to show, "" if there is one.
func (x Across) Why() string {
	switch {
	case x.File.Path != "":
		return ""
	case x.Changes.Why != "":
		return Clean(x.Changes.Why)
	case slices.Contains(x.Changes.Untracked, x.Path):
		return "its content is not shown: " + plain.Visible(x.Path) + " is large, or no file of text"
	}
	return "no change of " + plain.Visible(x.Path) + " any more"
}
