package main

import "testing"

func TestVerdict(t *testing.T) {
	for want, f := range map[string]figure{
		"":                   {ours: 3, unit: "ms"},
		"<= 2.00 x: met":     {bare: 2, ours: 4, unit: "ms", goal: ratioAtMost(2)},
		"<= 1.50 x: MISSED":  {bare: 2, ours: 4, unit: "ms", goal: ratioAtMost(1.5)},
		">= 0.80 x: met":     {bare: 100, ours: 80, unit: "MB/s", goal: ratioAtLeast(0.8)},
		">= 0.90 x: MISSED":  {bare: 100, ours: 80, unit: "MB/s", goal: ratioAtLeast(0.9)},
		"<= 25.0 MB: MISSED": {bare: 2, ours: 26, unit: "MB", goal: atMost(25)},
		"<= 0: met":          {ours: 0, goal: atMost(0)},
		"<= 0: MISSED":       {ours: 1, goal: atMost(0)},
	} {
		if got := f.verdict(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}
