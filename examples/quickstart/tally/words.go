package main

import "unicode"

// Split returns the words of a text: runs of letters and digits.
func Split(text string) []string {
	var words []string
	start := -1
	for i, r := range text {
		inside := unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			words = append(words, text[start:i])
			start = -1
		}
	}
	return words
}
