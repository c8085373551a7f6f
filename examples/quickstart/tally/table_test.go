package main

import "testing"

func TestTable(t *testing.T) {
	got := Table([]Entry{{"orange", 12}, {"fig", 3}})
	want := "" +
		"word    count\n" +
		"orange     12\n" +
		"fig         3\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTableUnicode(t *testing.T) {
	got := Table([]Entry{{"Äpfel", 12}, {"orange", 3}})
	want := "" +
		"word    count\n" +
		"Äpfel      12\n" +
		"orange      3\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTableWidth(t *testing.T) {
	got := Table([]Entry{{"Äpfel", 12}})
	want := "" +
		"word   count\n" +
		"Äpfel     12\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
