package main

import (
	"reflect"
	"testing"
)

func TestCount(t *testing.T) {
	got := Count([]string{"a", "b", "b"})
	if want := []Entry{{"b", 2}, {"a", 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCountTies(t *testing.T) {
	got := Count([]string{"pear", "fig", "apple"})
	if want := []Entry{{"apple", 1}, {"fig", 1}, {"pear", 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCountCase(t *testing.T) {
	got := Count([]string{"The", "the", "THE"})
	if want := []Entry{{"the", 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
