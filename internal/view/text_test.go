package view

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		-time.Second:            "0s",
		1240 * time.Millisecond: "1.2s",
		12 * time.Second:        "12s",
		185 * time.Second:       "3m05s",
		130 * time.Minute:       "2h10m",
		100 * time.Hour:         "4d4h",
	} {
		if got := Duration(in); got != want {
			t.Errorf("Duration(%v) = %q, want %q", in, got, want)
		}
	}
	if got := Elapsed(1900 * time.Millisecond); got != "1s" {
		t.Errorf("Elapsed(1.9s) = %q, want whole seconds", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 119 * time.Minute: "1h", 50 * time.Hour: "2d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
		next := AgeChanges(d)
		if next <= 0 || Age(d+next-time.Nanosecond) != Age(max(0, d)) || Age(max(0, d)+next) == Age(max(0, d)) {
			t.Errorf("%v: changes after %v", d, next)
		}
	}
}
