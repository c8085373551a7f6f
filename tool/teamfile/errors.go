package teamfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Problem is one error in a file. Line and Column count from 1; Line 0 means the file as a whole.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Msg    string `json:"message"`
}

// Error returns "file:line:column: message".
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Msg)
}

// Problems are all errors of a file, in order of position.
type Problems []Problem

const shown = 20

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for i, p := range ps {
		if i == shown {
			lines = append(lines, fmt.Sprintf("%s: and %d more", p.File, len(ps)-shown))
			break
		}
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) coded() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return team.Errorf(team.CodeInvalid, "%w", ps).WithReason(team.ReasonBadFile).
		WithHint("correct the file and run the command again; nothing was changed")
}
