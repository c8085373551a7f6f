package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// changedLines returns the lines of a diff with what has changed in brackets, and whether each is
// compared with another.
func changedLines(lines []DiffLine) (out []string) {
	r := Replacements(lines)
	for i, l := range lines {
		text, at := string(rune(l.Kind)), 0
		for _, s := range r.Changed[i] {
			text += l.Text[at:s.From] + "[" + l.Text[s.From:s.To] + "]"
			at = s.To
		}
		text += l.Text[at:]
		if r.With[i] >= 0 {
			text += fmt.Sprintf(" =%d", r.With[i])
		}
		out = append(out, text)
	}
	return out
}

func diffOf(lines ...string) (out []DiffLine) {
	for _, l := range lines {
		out = append(out, DiffLine{Kind: DiffKind(l[0]), Text: l[1:]})
	}
	return out
}

func TestReplacements(t *testing.T) {
	t.Parallel()
	for _, c := range [][2][]string{
		{{"-return c.sum", "+return c.total"}, {"-return c.[sum] =1", "+return c.[total] =0"}},
		{{"-if a == b {", "+if a == b && !c {"}, {"-if a == b { =1", "+if a == b [&& !c ]{ =0"}},
		{{"-\tx := 1", "+\t\tx := 1"}, {"-[\t]x := 1 =1", "+[\t\t]x := 1 =0"}},
		{{"-one two three four five", "+one 2 3 four five"}, {"-one [two three] four five =1", "+one [2 3] four five =0"}}, // not word by word
		{{"-the first line", "+func main() {}"}, {"-the first line", "+func main() {}"}},                                   // little in common
		{{"-a", "-b", " ", "+a"}, {"-a", "-b", " ", "+a"}},
		{{"-same", `\No newline`, "+same now"}, {"-same =2", `\No newline`, "+same[ now] =0"}},
		{ // by likeness, in order
			{"-total := sum(list)", "-return total", "+// Total is what it costs.", "+total := sum(items)", "+check(total)", "+return total, nil"},
			{"-total := sum([list]) =3", "-return total =5", "+// Total is what it costs.", "+total := sum([items]) =0", "+check(total)", "+return total[, nil] =1"},
		},
		{{"-café au lait", "+cafe\u0301 au lait"}, {"-[café] au lait =1", "+[cafe\u0301] au lait =0"}},
		{{"-数据库的表", "+数据库的行"}, {"-数据库的[表] =1", "+数据库的[行] =0"}},
		{{"-a 👩‍👩‍👧 and me", "+a 👩‍👩‍👦 and me"}, {"-a [👩‍👩‍👧] and me =1", "+a [👩‍👩‍👦] and me =0"}},
		{{"-", "+"}, {"-", "+"}},
	} {
		if got := changedLines(diffOf(c[0]...)); !slices.Equal(got, c[1]) {
			t.Errorf("%q:\n got %q\nwant %q", c[0], got, c[1])
		}
	}
}

// checkReplacements checks what holds for any diff.
func checkReplacements(t *testing.T, lines []DiffLine) {
	t.Helper()
	r := Replacements(lines)
	rests := make([]string, len(lines))
	for i, l := range lines {
		bounds, at := map[int]bool{0: true}, 0
		for at < len(l.Text) {
			cluster, _ := ansi.FirstGraphemeCluster(l.Text[at:], ansi.GraphemeWidth)
			at += len(cluster)
			bounds[at] = true
		}
		at = 0
		for k, s := range r.Changed[i] {
			if s.From < at || s.To <= s.From || s.To > len(l.Text) || k > 0 && s.From == at {
				t.Fatalf("%q: spans %v", l.Text, r.Changed[i])
			}
			if !bounds[s.From] || !bounds[s.To] {
				t.Errorf("%q: %v splits a grapheme", l.Text, s)
			}
			rests[i] += l.Text[at:s.From]
			at = s.To
		}
		rests[i] += l.Text[at:]
	}
	last := -1
	for i, j := range r.With {
		switch {
		case j < 0 && len(r.Changed[i]) > 0:
			t.Errorf("line %d has changes and no other line", i)
		case j < 0:
		case r.With[j] != i || lines[i].Kind == lines[j].Kind:
			t.Errorf("line %d is with %d, and that with %d", i, j, r.With[j])
		case rests[i] != rests[j]:
			t.Errorf("%q and %q leave %q and %q", lines[i].Text, lines[j].Text, rests[i], rests[j])
		case lines[i].Kind == Removed && j < last:
			t.Errorf("line %d is with %d, after one with %d", i, j, last)
		case lines[i].Kind == Removed:
			last = j
		}
	}
}

// FuzzReplacements: the changed parts cut out of two lines leave the same text, and are whole graphemes.
func FuzzReplacements(f *testing.F) {
	f.Add("-a b\n+a c")
	f.Add("-e\u0301 \r\xff x\n-y\n+e \u200d\u200d x\n+y z\n+👩‍👩‍👧")
	f.Fuzz(func(t *testing.T, s string) {
		var lines []DiffLine
		for l := range strings.SplitSeq(s, "\n") {
			if l != "" && strings.ContainsRune(`-+ @\`, rune(l[0])) {
				lines = append(lines, DiffLine{Kind: DiffKind(l[0]), Text: l[1:]})
			}
		}
		checkReplacements(t, lines)
	})
}

func TestReplacementsOfAnything(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "foo", "_x1", " ", "  ", "\t", "(", "){", ".", "é", "e\u0301", "\u0301", "👩‍👩‍👧", "🇩🇪", "\u200d", "数", "据", "\xff", "\r", "שלום", "한"}
	for range 3000 {
		var lines []DiffLine
		for range 1 + rnd.IntN(9) {
			text := ""
			for range rnd.IntN(12) {
				text += parts[rnd.IntN(len(parts))]
			}
			lines = append(lines, DiffLine{Kind: DiffKind("--++ "[rnd.IntN(5)]), Text: text})
		}
		checkReplacements(t, lines)
	}
}

// TestReplacementsAreBounded: long lines and huge hunks cost no more than maxWork comparisons of words.
func TestReplacementsAreBounded(t *testing.T) {
	t.Parallel()
	long := func(sign, word string) string {
		return sign + "begin " + strings.Repeat(word+" ", 10_000/(len(word)+1)) + "end"
	}
	var equal, unequal []string
	for i := range 20_000 {
		equal = append(equal, fmt.Sprintf("-line %d of the old text, with words", i))
		unequal = append(unequal, fmt.Sprintf("-line %d", i))
	}
	for i := range 20_000 {
		equal = append(equal, fmt.Sprintf("+line %d of a new text with %d words", i, i))
		unequal = append(unequal, fmt.Sprintf("+line %d", i+1))
	}
	unequal = append(unequal, "+one more")
	for name, lines := range map[string][]DiffLine{
		"long lines":     diffOf(long("-", "a b"), long("+", "a c d")),
		"many of them":   diffOf(slices.Concat(slices.Repeat([]string{long("-", "a b")}, 50), slices.Repeat([]string{long("+", "a c d")}, 51))...),
		"equal hunk":     diffOf(equal...),
		"unequal hunk":   diffOf(unequal...),
		"one long line":  diffOf("-"+strings.Repeat("x", 10_000), "+"+strings.Repeat("x", 9_999)+"y"),
		"long and blank": diffOf("-"+strings.Repeat(" ", 10_000)+"x", "+x"),
	} {
		c := comparer{work: maxWork}
		if !c.spend(maxWork) || c.spend(1) {
			t.Error("work is not counted")
		}
		checkReplacements(t, lines)
		r := Replacements(lines)
		if name == "equal hunk" && (r.With[0] != 20_000 || len(r.Changed[0]) == 0) {
			t.Errorf("%s: nothing is marked", name)
		}
	}
	if got := changedLines(diffOf("-"+strings.Repeat("same ", 2_000)+strings.Repeat("old ", 400)+"x end", "+"+strings.Repeat("same ", 2_000)+strings.Repeat("new ", 400)+"y end")); !strings.Contains(got[0], "same [old ") || !strings.Contains(got[0], "x] end") {
		t.Errorf("what is too long to compare is not marked as a whole: …%s", got[0][len(got[0])-40:])
	}
}
