package view

// reach is a run of changed lines: its place among the lines of a diff, and the lines of the file before
// the change that it replaces. One that only adds has none: from is the line before which it does.
type reach struct{ first, end, from, to int }

func (f FileDiff) reaches() (out []reach) {
	next, in := 0, false
	for i, l := range f.Lines {
		switch l.Kind {
		case Added, Removed:
			if !in {
				out, in = append(out, reach{first: i, from: next, to: next}), true
			}
			run := &out[len(out)-1]
			run.end = i + 1
			if l.Kind == Removed {
				next = l.Old + 1
				run.to = next
			}
		case Context:
			next, in = l.Old+1, false
		case Hunk:
			next, in = l.Old, false
		case NoEnd:
		}
	}
	return out
}

// Crossed marks the lines of a file's changes that another change of the same file touches, too: the
// same lines, or those directly before or after, as which git merges them into a conflict. known is
// false if the two do not begin with the same content, so that their lines cannot be compared.
func (f FileDiff) Crossed(other FileDiff) (lines []bool, known bool) {
	if f.begins() == "" || f.begins() != other.begins() {
		return nil, false
	}
	lines = make([]bool, len(f.Lines))
	theirs := other.reaches()
	for _, a := range f.reaches() {
		for _, b := range theirs {
			if a.from <= b.to && b.from <= a.to {
				for i := a.first; i < a.end; i++ {
					lines[i] = true
				}
				break
			}
		}
	}
	return lines, true
}

// begins is the content before the change: the name of its blob, "new" for a file that was not there.
func (f FileDiff) begins() string {
	if f.State == "new" {
		return "new"
	}
	return f.Old
}
