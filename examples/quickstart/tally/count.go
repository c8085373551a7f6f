package main

import "sort"

// Entry is a word and how often it occurs.
type Entry struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

// Count counts words without regard to case. The most frequent comes first, words of
// the same frequency are in alphabetical order.
func Count(words []string) []Entry {
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}

	entries := make([]Entry, 0, len(counts))
	for w, n := range counts {
		entries = append(entries, Entry{w, n})
	}

	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		if a.Count != b.Count {
			return a.Count > b.Count
		}
		return a.Word > b.Word
	})
	return entries
}
