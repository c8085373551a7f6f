// Package secrets hides known secret values in what an agent reads and writes: transcript entries,
// logs, errors, its screen.
package secrets

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// minLength is the minimum length of hidden values: shorter ones occur in ordinary text.
const minLength = 8

// Set is the secrets of one process. The zero value hides nothing. It is safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	values  []secret // longest first: a secret may contain another
	replace *strings.Replacer
	longest int
}

type secret struct{ value, name string }

// Add adds a value with a name, such as its variable. Values of less than 8 characters are
// ignored.
func (s *Set) Add(name, value string) {
	value = strings.TrimSpace(value)
	if len(value) < minLength {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.values, func(k secret) bool { return k.value == value }) {
		return
	}
	s.values = append(s.values, secret{value, name})
	if escaped := inJSON(value); escaped != value {
		s.values = append(s.values, secret{escaped, name})
	}
	slices.SortStableFunc(s.values, func(a, b secret) int { return len(b.value) - len(a.value) })
	pairs := make([]string, 0, 2*len(s.values))
	for _, k := range s.values {
		pairs = append(pairs, k.value, "[redacted:"+k.name+"]")
	}
	s.replace, s.longest = strings.NewReplacer(pairs...), len(s.values[0].value)
}

// inJSON returns a value as written in a JSON string.
func inJSON(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
}

// Hide returns text with every secret replaced by [redacted:NAME].
func (s *Set) Hide(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.replace == nil {
		return text
	}
	return s.replace.Replace(text)
}

// Writer returns a writer to w that hides secrets, also those split across two writes. It holds
// back the end of the text while that may be the beginning of a secret; Close writes it.
func (s *Set) Writer(w io.Writer) io.WriteCloser { return &writer{set: s, w: w} }

type writer struct {
	set  *Set
	w    io.Writer
	mu   sync.Mutex
	held string
}

// Write implements io.Writer: text that is held back counts as written.
func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.held + string(b)
	keep := w.set.open(text)
	w.held = text[len(text)-keep:]
	if _, err := io.WriteString(w.w, w.set.Hide(text[:len(text)-keep])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close writes the text that was held back. It does not close the underlying writer.
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.set.Hide(w.held)
	w.held = ""
	_, err := io.WriteString(w.w, text)
	return err
}

// open returns the length of the longest end of text that must be held back, because it begins a
// secret and no complete secret overlaps its beginning.
func (s *Set) open(text string) int {
	if s == nil {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := max(0, len(text)-s.longest+1); i < len(text); i++ {
		if slices.ContainsFunc(s.values, func(k secret) bool { return len(k.value) > len(text)-i && strings.HasPrefix(k.value, text[i:]) }) {
			if j := s.whole(text, i); j > i {
				i = j - 1 // it is covered by a complete secret
				continue
			}
			return len(text) - i
		}
	}
	return 0
}

// whole returns the end of a complete secret that begins before at and ends after it, or at.
func (s *Set) whole(text string, at int) int {
	for i := 0; i < len(text); {
		n := 0
		for _, k := range s.values { // the longest that begins here, as in Hide
			if strings.HasPrefix(text[i:], k.value) {
				n = len(k.value)
				break
			}
		}
		switch {
		case n == 0:
			i++
		case i < at && i+n > at:
			return i + n
		default:
			i += n
		}
		if i > at {
			break
		}
	}
	return at
}
