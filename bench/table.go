package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// figure is one row of a table: what was measured, against which floor of the same
// run, and what was aimed at. Values are in the unit; a bare of 0 means that there is no floor.
type figure struct {
	what  string
	floor string // what the floor is
	bare  float64
	ours  float64
	unit  string
	goal  goal
}

// goal is a bound on a figure. The zero value is none.
type goal struct {
	of    string // ofRatio or ofValue
	most  float64
	least float64
}

const (
	ofRatio = "x"
	ofValue = "ours"
)

func ratioAtMost(x float64) goal  { return goal{of: ofRatio, most: x} }
func ratioAtLeast(x float64) goal { return goal{of: ofRatio, least: x} }
func atMost(x float64) goal       { return goal{of: ofValue, most: x} }

// ratio of ours to the floor; 0 where there is no floor.
func (f figure) ratio() float64 {
	if f.bare == 0 {
		return 0
	}
	return f.ours / f.bare
}

// verdict is the goal and whether it is met.
func (f figure) verdict() string {
	got, unit := f.ours, f.unit
	if f.goal.of == ofRatio {
		got, unit = f.ratio(), "x"
	}
	var word string
	var met bool
	switch {
	case f.goal.of == "":
		return ""
	case f.goal.least > 0:
		word, met = strings.TrimSpace(">= "+number(f.goal.least)+" "+unit), got >= f.goal.least
	default:
		word, met = strings.TrimSpace("<= "+number(f.goal.most)+" "+unit), got <= f.goal.most
	}
	if !met {
		return word + ": MISSED"
	}
	return word + ": met"
}

// table is figures in Markdown, under the line that says where they were taken.
func table(rounds int, note string, figures []figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\n\n| what | floor | floor's | ours | ratio | goal |\n|---|---|---|---|---|---|\n", where(rounds), load(), note)
	for _, f := range figures {
		bare, ratio := "", ""
		if f.bare != 0 {
			bare, ratio = number(f.bare)+" "+f.unit, fmt.Sprintf("%.2f", f.ratio())
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.what, f.floor, bare, strings.TrimSpace(number(f.ours)+" "+f.unit), ratio, f.verdict())
	}
	return b.String()
}

// number is a value with three digits that count.
func number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// load says whether the machine had other work.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	avg, _, _ := strings.Cut(string(b), " ")
	return "Load average " + avg + "."
}
