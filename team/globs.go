package team

import "strings"

// Globs of paths in a repository: * and ? do not cross a slash, [...] is a class,
// ** stands for any number of directories. A glob that ends with a slash means
// everything below.

// ValidGlob reports whether a glob can match a path that is inside the repository.
func ValidGlob(glob string) bool {
	if glob == "" || strings.HasPrefix(glob, "/") || strings.ContainsAny(glob, "\x00\n") {
		return false
	}
	for _, s := range globParts(glob) {
		if s == "" || s == "." || s == ".." {
			return false
		}
		for i := 0; i < len(s); i++ {
			if s[i] != '[' {
				continue
			}
			n := classEnd(s[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// GlobMatch reports whether glob matches path.
func GlobMatch(glob, path string) bool {
	return meet(globParts(glob), strings.Split(path, "/"), false, tried{})
}

// GlobsMeet reports whether some path may be matched by both globs. It errs on
// the side of yes where classes are compared.
func GlobsMeet(a, b string) bool { return meet(globParts(a), globParts(b), true, tried{}) }

// tried are the pairs of rests, by their lengths, that do not meet: each is
// looked at once, however many stars there are.
type tried map[[2]int]bool

func (t tried) before(a, b int) bool {
	k := [2]int{a, b}
	if t[k] {
		return true
	}
	t[k] = true
	return false
}

func globParts(glob string) []string {
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return strings.Split(glob, "/")
}

// meet compares segment by segment; with both, b is a glob too.
func meet(a, b []string, both bool, seen tried) bool {
	if seen.before(len(a), len(b)) {
		return false
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return true
	case len(a) > 0 && a[0] == "**":
		if meet(a[1:], b, both, seen) {
			return true
		}
		return len(b) > 0 && meet(a, b[1:], both, seen)
	case both && len(b) > 0 && b[0] == "**":
		if meet(a, b[1:], both, seen) {
			return true
		}
		return len(a) > 0 && meet(a[1:], b, both, seen)
	case len(a) == 0 || len(b) == 0:
		return false
	}
	return meetSegment(a[0], b[0], both, tried{}) && meet(a[1:], b[1:], both, seen)
}

func meetSegment(a, b string, both bool, seen tried) bool {
	if seen.before(len(a), len(b)) {
		return false
	}
	switch {
	case a == "" && b == "":
		return true
	case a != "" && a[0] == '*':
		if meetSegment(a[1:], b, both, seen) {
			return true
		}
		return b != "" && meetSegment(a, skip(b, both), both, seen)
	case both && b != "" && b[0] == '*':
		if meetSegment(a, b[1:], both, seen) {
			return true
		}
		return a != "" && meetSegment(skip(a, true), b, both, seen)
	case a == "" || b == "":
		return false
	}
	if !meetRune(a, b, both) {
		return false
	}
	return meetSegment(skip(a, true), skip(b, both), both, seen)
}

// skip drops the first character, in a glob the first class, of s.
func skip(s string, glob bool) string {
	if glob && s[0] == '[' {
		if n := classEnd(s); n > 0 {
			return s[n:]
		}
	}
	for i := range s {
		if i > 0 {
			return s[i:]
		}
	}
	return ""
}

// classEnd is the length of the class at the beginning of s, or 0.
func classEnd(s string) int {
	for i := 2; i < len(s); i++ { // a ] right behind the [ belongs to it
		if s[i] == ']' {
			return i + 1
		}
	}
	return 0
}

func meetRune(a, b string, both bool) bool {
	ra, rb := firstRune(a), firstRune(b)
	wildB := both && (rb == '?' || rb == '[' && classEnd(b) > 0)
	switch {
	case ra == '?' || wildB && rb == '?':
		return true
	case ra == '[' && classEnd(a) > 0:
		return wildB || inClass(a[:classEnd(a)], rb)
	case wildB:
		return inClass(b[:classEnd(b)], ra)
	}
	return ra == rb
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func inClass(class string, r rune) bool {
	body := []rune(class[1 : len(class)-1])
	not := len(body) > 0 && (body[0] == '!' || body[0] == '^')
	if not {
		body = body[1:]
	}
	found := false
	for i := 0; i < len(body); i++ {
		if i+2 < len(body) && body[i+1] == '-' {
			found = found || body[i] <= r && r <= body[i+2]
			i += 2
			continue
		}
		found = found || body[i] == r
	}
	return found != not
}
