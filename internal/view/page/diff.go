package page

import (
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// Diff is what a member has changed, with what was said about it beside the lines.
type Diff struct {
	Of    view.Changes
	Files []DiffFile
}

// DiffFile is one changed file.
type DiffFile struct {
	view.FileDiff
	Member   string
	Reviewed bool
	Also     []string       // other members that have changed it
	Above    []view.Comment // about the whole file, or lines that have changed since
	Rows     []DiffRow
}

// DiffRow is a line and what was said about it.
type DiffRow struct {
	view.DiffLine
	Pieces   []Piece // the text
	Crossed  bool    // other members touch it, too
	Comments []view.Comment
}

// Piece is a part of the text of a line. Changed: the line that it replaces, or that replaces it,
// lacks it.
type Piece struct {
	Text    string
	Changed bool
}

// pieces are the texts of lines, which are harmless, in parts.
func pieces(lines []view.DiffLine) [][]Piece {
	out := make([][]Piece, len(lines))
	for i, changed := range view.Replacements(lines).Changed {
		at, text := 0, lines[i].Text
		for _, p := range changed {
			if p.From > at {
				out[i] = append(out[i], Piece{Text: text[at:p.From]})
			}
			out[i] = append(out[i], Piece{text[p.From:p.To], true})
			at = p.To
		}
		if at < len(text) {
			out[i] = append(out[i], Piece{Text: text[at:]})
		}
	}
	return out
}

// Number is the line in the file that a comment names, 0 for none; Old: in the file before the
// change.
func (r DiffRow) Number() int {
	switch r.Kind {
	case view.Added, view.Context:
		return r.New
	case view.Removed:
		return r.Old
	case view.Hunk, view.NoEnd:
	}
	return 0
}

// Removed reports a line that the member has removed.
func (r DiffRow) Removed() bool { return r.Kind == view.Removed }

// NewDiff puts the comments where they belong. Those on files that have no changes any more are
// in files of their own.
func NewDiff(c view.Changes) Diff {
	d := Diff{Of: c}
	at := map[string]int{}
	for _, f := range view.ParseDiff(c.Patch) {
		x := DiffFile{FileDiff: f, Member: c.Member, Reviewed: c.Reviewed[f.Path], Also: c.Also[f.Path]}
		x.Rows = rowsOf(f)
		at[f.Path] = len(d.Files)
		d.Files = append(d.Files, x)
	}
	for _, x := range c.Comments {
		i, ok := at[x.Path]
		if !ok {
			i = len(d.Files)
			at[x.Path] = i
			d.Files = append(d.Files, DiffFile{FileDiff: view.FileDiff{Path: x.Path, State: "no changes now"}, Member: c.Member})
		}
		f := &d.Files[i]
		if line := f.LineOf(x); line >= 0 {
			f.Rows[line].Comments = append(f.Rows[line].Comments, x)
		} else {
			f.Above = append(f.Above, x)
		}
	}
	return d
}

func rowsOf(f view.FileDiff) (rows []DiffRow) {
	lines := slices.Clone(f.Lines)
	for i, l := range lines {
		lines[i].Text = plain.Text(l.Text)
	}
	texts := pieces(lines)
	for i, l := range f.Lines {
		rows = append(rows, DiffRow{DiffLine: l, Pieces: texts[i]})
	}
	return rows
}

// Across is a file of a member as all members that change it have it.
type Across struct {
	Path, Member string
	List         []AcrossMember
}

// AcrossMember is the file of one of them.
type AcrossMember struct {
	view.Across
	Rows []DiffRow
}

// NewAcross marks the lines that more than one member touches.
func NewAcross(path, member string, list []view.Across) Across {
	a := Across{Path: path, Member: member}
	for _, x := range list {
		m := AcrossMember{x, rowsOf(x.File)}
		for i := range m.Rows {
			m.Rows[i].Crossed = x.Marks[i]
		}
		a.List = append(a.List, m)
	}
	return a
}

// Round says how far the comments that were sent last have come, "" for none.
func (d Diff) Round() string {
	if round, open, handled := d.Of.LastRound(); round > 0 {
		return fmt.Sprintf("round %d: %d open, %d handled", round, open, handled)
	}
	return ""
}

// where says which lines a comment is about.
func where(c view.Comment) string {
	switch {
	case c.First == 0:
		return "the file"
	case c.Changed:
		return fmt.Sprintf("changed since, was line %d", c.First)
	case c.Last > c.First:
		return fmt.Sprintf("lines %d to %d", c.First, c.Last)
	}
	return fmt.Sprintf("line %d", c.First)
}
