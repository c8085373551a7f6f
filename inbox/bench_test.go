package inbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

var histories = []int{10, 1_000, 10_000}

func filled(b *testing.B, n int, read bool) *Box {
	b.Helper()
	box, _ := newBox(b)
	var text strings.Builder
	text.WriteByte('[')
	for i := range n {
		e := numbered("w", i)
		e.Timestamp, e.Read = "2026-02-09T15:08:17.410Z", read
		raw, err := e.encode()
		if err != nil {
			b.Fatal(err)
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString("\n  ")
		text.Write(raw)
	}
	text.WriteString("\n]")
	put(b, box, text.String())
	return box
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range histories {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			box := filled(b, n, false)
			ctx := context.Background()
			e := numbered("w", 1)
			for b.Loop() {
				if err := box.Append(ctx, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A long-lived reader reads and marks each message as it arrives.
func BenchmarkAppendAndConsume(b *testing.B) {
	for _, n := range histories {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			box := filled(b, n, true)
			ctx := context.Background()
			e := numbered("w", 1)
			for b.Loop() {
				if err := box.Append(ctx, e); err != nil {
					b.Fatal(err)
				}
				got, err := box.Consume(ctx, 0, nil)
				if err != nil || len(got) != 1 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

func BenchmarkEntries(b *testing.B) {
	for _, n := range histories {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			box := filled(b, n, true)
			ctx := context.Background()
			for b.Loop() {
				if got, err := box.Entries(ctx); err != nil || len(got) != n {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
