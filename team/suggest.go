package team

import "strings"

// Closest is the option that word is most likely a slip of, or "" when none is
// near: at most a third of its letters differ and at most two, counting a swap of
// neighbours as one. Case does not count. Of two that are as near, the one that begins alike is
// meant: a first letter is seldom wrong.
func Closest(word string, options []string) string {
	best, bestAt := "", 0
	if n := len([]rune(word)); n > 2 {
		bestAt = min((n+1)/3, 2)
	}
	for _, o := range options {
		d := distance(strings.ToLower(word), strings.ToLower(o))
		if d < bestAt || d == bestAt && (best == "" || alike(word, o) && !alike(word, best)) {
			best, bestAt = o, d
		}
	}
	if best == "" && len(word) >= 2 {
		for _, o := range options {
			if strings.HasPrefix(strings.ToLower(o), strings.ToLower(word)) {
				return o
			}
		}
	}
	return best
}

// alike reports whether two words begin with the same letter.
func alike(a, b string) bool {
	return a != "" && b != "" && strings.EqualFold(a[:1], b[:1])
}

// distance is the optimal string alignment distance.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev2 := make([]int, len(y)+1)
	prev := make([]int, len(y)+1)
	cur := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}
