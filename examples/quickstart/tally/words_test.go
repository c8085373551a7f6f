package main

import (
	"reflect"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"one two. ", []string{"one", "two"}},
		{"-- 3 dots...", []string{"3", "dots"}},
	} {
		if got := Split(c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Split(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSplitLast(t *testing.T) {
	got := Split("the last word")
	if want := []string{"the", "last", "word"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the text ends in a word: %q, want %q", got, want)
	}
}
