package view

import (
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Part is a part of a text, from the byte From up to the byte To.
type Part struct{ From, To int }

// Replaced has, for each line of a diff by its index, the line on the other side that it replaces
// or that replaces it.
type Replaced struct {
	With []int // index of the other line, -1 for none
	// Changed has the parts of the line that the other line lacks, in order. Without them the
	// texts of the two lines are equal. Parts never split a grapheme.
	Changed [][]Part
}

const (
	// minAlike is the likeness in percent from which two lines are compared word by word.
	minAlike = 40
	// maxCells bounds the comparison of two lines, maxWork that of all lines of a file. Both are
	// pairs of words.
	maxCells = 1 << 16
	maxWork  = 1 << 22
)

// Replacements compares the removed lines of a diff with the added lines that follow them: in
// order if there are as many, else those that are most alike. Lines that have little in common are
// not compared. The work is bounded: where it would be too much, words are not compared, or the
// whole part between the common beginning and end of two lines is marked.
func Replacements(lines []DiffLine) Replaced {
	r := Replaced{With: make([]int, len(lines)), Changed: make([][]Part, len(lines))}
	for i := range r.With {
		r.With[i] = -1
	}
	c := comparer{work: maxWork}
	for i := 0; i < len(lines); {
		removed := runOf(lines, i, Removed)
		first := runOf(lines, removed, NoEnd) // of a file whose last line has changed
		added := runOf(lines, first, Added)
		if removed == i || added == first {
			i = max(i+1, removed)
			continue
		}
		c.block(lines, r, i, removed, first, added)
		i = added
	}
	return r
}

// runOf returns the end of the lines of a kind that begin at i.
func runOf(lines []DiffLine, i int, kind DiffKind) int {
	for i < len(lines) && lines[i].Kind == kind {
		i++
	}
	return i
}

// comparer compares lines within the work that is left.
type comparer struct {
	work  int
	table []int32
}

func (c *comparer) block(lines []DiffLine, r Replaced, from, removed, first, added int) {
	compare := func(i, j int) {
		if a, b, ok := c.changed(split(lines[i].Text), split(lines[j].Text)); ok {
			r.With[i], r.With[j], r.Changed[i], r.Changed[j] = j, i, a, b
		}
	}
	if removed-from == added-first {
		for i := range removed - from {
			compare(from+i, first+i)
		}
		return
	}
	for _, p := range c.match(lines[from:removed], lines[first:added]) {
		compare(from+p[0], first+p[1])
	}
}

// match pairs lines, in order, so that the pairs are as alike as possible.
func (c *comparer) match(removed, added []DiffLine) (pairs [][2]int) {
	if len(removed)*len(added) > maxCells {
		return nil
	}
	old, now, longest := wordsOf(removed), wordsOf(added), 1
	for _, s := range old {
		longest = max(longest, len(s.words))
	}
	if !c.spend(len(old) * len(now) * longest) {
		return nil
	}
	width := len(now) + 1
	alike := make([]int, len(old)*len(now))
	bags := make([]map[string]int, len(now))
	for j, s := range now {
		bags[j] = s.bag()
	}
	best := c.cells(len(old)+1, width)
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			b := max(best[(i+1)*width+j], best[i*width+j+1])
			if n := old[i].alike(now[j], bags[j]); n >= minAlike {
				alike[i*len(now)+j] = n
				b = max(b, best[(i+1)*width+j+1]+int32(n))
			}
			best[i*width+j] = b
		}
	}
	for i, j := 0, 0; i < len(old) && j < len(now); {
		switch n := alike[i*len(now)+j]; {
		case n > 0 && best[i*width+j] == best[(i+1)*width+j+1]+int32(n):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case best[i*width+j] == best[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// spend takes work from what is left, if it is enough.
func (c *comparer) spend(n int) bool {
	if n > c.work {
		return false
	}
	c.work -= n
	return true
}

// cells returns a table of zeros.
func (c *comparer) cells(rows, columns int) []int32 {
	if n := rows * columns; cap(c.table) < n {
		c.table = make([]int32, n)
	} else {
		c.table = c.table[:n]
		clear(c.table)
	}
	return c.table
}

// changed returns the parts of two lines that differ; ok is false if the lines have too little in
// common.
func (c *comparer) changed(a, b sentence) (inA, inB []Part, ok bool) {
	begin, endA, endB := 0, len(a.words), len(b.words)
	for begin < min(endA, endB) && a.text(begin) == b.text(begin) {
		begin++
	}
	for endA > begin && endB > begin && a.text(endA-1) == b.text(endB-1) {
		endA, endB = endA-1, endB-1
	}
	var common [][2]int
	for i := range begin {
		common = append(common, [2]int{i, i})
	}
	n, m := endA-begin, endB-begin
	if cells := (n + 1) * (m + 1); n > 0 && m > 0 && cells <= maxCells && c.spend(cells) {
		width := m + 1
		best := c.cells(n+1, width)
		for i := n - 1; i >= 0; i-- {
			for j := m - 1; j >= 0; j-- {
				cell := max(best[(i+1)*width+j], best[i*width+j+1])
				if a.text(begin+i) == b.text(begin+j) {
					cell = max(cell, best[(i+1)*width+j+1]+a.weight(begin+i))
				}
				best[i*width+j] = cell
			}
		}
		for i, j := 0, 0; i < n && j < m; {
			switch {
			case a.text(begin+i) == b.text(begin+j) && best[i*width+j] == best[(i+1)*width+j+1]+a.weight(begin+i):
				common = append(common, [2]int{begin + i, begin + j})
				i, j = i+1, j+1
			case best[i*width+j] == best[(i+1)*width+j]:
				i++
			default:
				j++
			}
		}
	}
	for i := range len(a.words) - endA {
		common = append(common, [2]int{endA + i, endB + i})
	}
	size := 0
	for _, p := range common {
		if w := a.words[p[0]]; !w.blank {
			size += w.size
		}
	}
	if percent(size, a.size, b.size) < minAlike {
		return nil, nil, false
	}
	common = withoutGaps(a, b, common)
	return a.rest(common, 0), b.rest(common, 1), true
}

// withoutGaps drops common blanks between two changed words, so that the words are marked as one.
func withoutGaps(a, b sentence, common [][2]int) [][2]int {
	out := make([][2]int, 0, len(common))
	for k, p := range common {
		begin, end := p[0] == 0 || p[1] == 0, p[0] == len(a.words)-1 || p[1] == len(b.words)-1
		before := begin || k > 0 && common[k-1] == [2]int{p[0] - 1, p[1] - 1}
		after := end || k+1 < len(common) && common[k+1] == [2]int{p[0] + 1, p[1] + 1}
		if !a.words[p[0]].blank || before || after {
			out = append(out, p)
		}
	}
	return out
}

// sentence is the text of a line in words.
type sentence struct {
	line  string
	words []word
	size  int // graphemes of all words that are not blanks
}

// word is a word, a run of blanks, or a sign.
type word struct {
	Part
	size  int // in graphemes
	blank bool
}

func (s sentence) text(i int) string { return s.line[s.words[i].From:s.words[i].To] }

// weight makes long words count more than the blanks and signs between them.
func (s sentence) weight(i int) int32 {
	if s.words[i].blank {
		return 1
	}
	return int32(2 * s.words[i].size)
}

// bag counts the words that are not blanks.
func (s sentence) bag() map[string]int {
	bag := map[string]int{}
	for i, w := range s.words {
		if !w.blank {
			bag[s.text(i)]++
		}
	}
	return bag
}

// alike is the share of the words that two lines have in common, in percent.
func (s sentence) alike(other sentence, bag map[string]int) int {
	size, seen := 0, map[string]int{}
	for i, w := range s.words {
		if text := s.text(i); !w.blank && seen[text] < bag[text] {
			seen[text]++
			size += w.size
		}
	}
	return percent(size, s.size, other.size)
}

func percent(common, a, b int) int {
	if a+b == 0 {
		return 0
	}
	return 200 * common / (a + b)
}

// rest returns what is left without the common words; side is the place of this text in them.
func (s sentence) rest(common [][2]int, side int) (out []Part) {
	at, k := 0, 0
	for i, w := range s.words {
		if k < len(common) && common[k][side] == i {
			k++
			continue
		}
		if n := len(out); n > 0 && at == w.From {
			out[n-1].To = w.To
		} else {
			out = append(out, w.Part)
		}
		at = w.To
	}
	return out
}

func wordsOf(lines []DiffLine) []sentence {
	out := make([]sentence, len(lines))
	for i, l := range lines {
		out[i] = split(l.Text)
	}
	return out
}

// Classes of graphemes.
const (
	letters = iota
	alone   // signs, and letters of scripts that have no blanks between words
	blanks
)

// split takes a text apart into words.
func split(text string) sentence {
	s := sentence{line: text}
	last := -1
	for at := 0; at < len(text); {
		n := 1
		if c := text[at]; c >= utf8.RuneSelf || c == '\r' || at+1 < len(text) && text[at+1] >= utf8.RuneSelf {
			cluster, _ := ansi.FirstGraphemeCluster(text[at:], ansi.GraphemeWidth)
			n = max(1, len(cluster))
		}
		class := classOf(text[at:])
		if k := len(s.words); class == last && class != alone {
			s.words[k-1].To = at + n
			s.words[k-1].size++
		} else {
			s.words = append(s.words, word{Part{at, at + n}, 1, class == blanks})
		}
		if class != blanks {
			s.size++
		}
		at, last = at+n, class
	}
	return s
}

// classOf returns the class of the grapheme that a text begins with.
func classOf(text string) int {
	switch r, _ := utf8.DecodeRuneInString(text); {
	case r >= 'a' && r <= 'z':
		return letters
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return alone
	case r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M):
		return letters
	case unicode.IsSpace(r):
		return blanks
	}
	return alone
}
