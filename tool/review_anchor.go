package tool

import (
	"strings"

	"github.com/teamctl/teamctl/ledger"
)

// around is the number of lines kept before and after those of a comment, to distinguish it from
// others with the same text.
const around = 3

// quoted returns an anchor with lines first to last of a file, counted from 1.
func quoted(a ledger.Anchor, lines []string, first, last int) ledger.Anchor {
	a.First, a.Last = first, last
	a.Quote = strings.Join(lines[first-1:last], "\n")
	a.Above = strings.Join(lines[max(0, first-1-around):first-1], "\n")
	a.Below = strings.Join(lines[last:min(len(lines), last+around)], "\n")
	return a
}

// locate returns the current place of a comment's lines: among the places with the same lines, the
// one with most of the same lines around it, and among those the nearest. Lines with almost no
// text, such as a brace, are found only at their former place or among the lines that were around
// them.
func locate(lines []string, a ledger.Anchor) (first int, ok bool) {
	quote := strings.Split(a.Quote, "\n")
	above, below := part(a.Above), part(a.Below)
	weak := true
	for _, l := range quote {
		weak = weak && len(strings.TrimSpace(l)) < 3
	}
	best := -1
	for i := 0; i+len(quote) <= len(lines); i++ {
		if !equal(lines[i:], quote) {
			continue
		}
		score := 0
		for n := 1; n <= len(above) && n <= i && above[len(above)-n] == lines[i-n]; n++ {
			score++
		}
		for n := 0; n < len(below) && i+len(quote)+n < len(lines) && below[n] == lines[i+len(quote)+n]; n++ {
			score++
		}
		if weak && score == 0 && i != a.First-1 {
			continue
		}
		if score > best || score == best && distance(i+1, a.First) < distance(first, a.First) {
			best, first = score, i+1
		}
	}
	return first, best >= 0
}

func part(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func equal(lines, quote []string) bool {
	for i, l := range quote {
		if lines[i] != l {
			return false
		}
	}
	return true
}

func distance(a, b int) int { return max(a-b, b-a) }
