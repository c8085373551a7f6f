package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	old := preamble + "\n## one\n\nold one\n\n## two\n\nold two\n### part of two\n"
	got := merge(old, []section{{"two", "new two\n"}, {"three", "new three\n"}})
	want := preamble + "\n## one\n\nold one\n\n## two\n\nnew two\n\n## three\n\nnew three\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("merged results (-want +got):\n%s", d)
	}
	if again := merge(got, nil); again != got {
		t.Errorf("merging nothing changed the file:\n%s", cmp.Diff(got, again))
	}
	if first := merge("", []section{{"one", "text\n"}}); first != preamble+"\n## one\n\ntext\n" {
		t.Errorf("first section: %q", first)
	}
}

func TestQuantile(t *testing.T) {
	times := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.9: 5, 1: 5} {
		if got := quantile(times, q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
}

func TestInterleave(t *testing.T) {
	ok := &program{label: "true", argv: []string{"true"}}
	if err := interleave(t.Context(), 2, []*program{ok}); err != nil || len(ok.times) != 2 {
		t.Errorf("two rounds: %d times, error %v", len(ok.times), err)
	}
	if err := interleave(t.Context(), 1, []*program{{label: "false", argv: []string{"false"}}}); err == nil {
		t.Error("a program that fails was measured")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := interleave(ctx, 1, []*program{ok}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run: %v", err)
	}
}

func TestChoose(t *testing.T) {
	if _, err := choose([]string{"nothing"}); err == nil {
		t.Error("an unknown benchmark was accepted")
	}
	if got, err := choose(nil); err != nil || len(got) != len(benchmarks) {
		t.Errorf("no name: %d benchmarks, error %v", len(got), err)
	}
}
