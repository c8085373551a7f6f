package ledger

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

func benchTasks(b *testing.B, l *Ledger, n int) {
	b.Helper()
	for n > 0 {
		batch := make([]NewTask, min(n, 10_000))
		for i := range batch {
			batch[i].Subject = "task"
		}
		must[[]Task](b)(l.CreateTasks(ctxFor(b), batch, "lead"))
		n -= len(batch)
	}
}

func BenchmarkClaim(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		l := newLedger(b)
		benchTasks(b, l, b.N)
		b.ResetTimer()
		for range b.N {
			must[*Task](b)(l.Claim(context.Background(), ClaimIn{Owner: "s"}))
		}
	})
	for _, clients := range []int{1, 16, 64} {
		b.Run("group/"+strconv.Itoa(clients), func(b *testing.B) {
			l := newLedger(b)
			benchTasks(b, l, b.N)
			g := New(l.DB(), startGroup(b, l.DB()))
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range clients {
				n := b.N / clients
				if c < b.N%clients {
					n++
				}
				wg.Go(func() {
					for range n {
						if task, err := g.Claim(context.Background(), ClaimIn{Owner: "s"}); err != nil || task == nil {
							b.Error(task, err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// Claiming the next task costs the same on a long board with a blocked head as
// on a short one.
func BenchmarkClaimRelease(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			l := newLedger(b)
			benchTasks(b, l, n)
			ok(b, sqlExec(b, l.DB(), "PRAGMA synchronous = OFF"))
			ok(b, l.Checkpoint(context.Background()))
			b.ResetTimer()
			for range b.N {
				task := must[*Task](b)(l.Claim(context.Background(), ClaimIn{Owner: "s"}))
				ok(b, l.Release(context.Background(), ref(task)))
			}
		})
	}
}

func BenchmarkCounts(b *testing.B) {
	l := newLedger(b)
	benchTasks(b, l, 100_000)
	b.ResetTimer()
	for range b.N {
		must[Counts](b)(l.Counts(context.Background()))
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	openAt(b, path)
	b.ResetTimer()
	for range b.N {
		db := must[*DB](b)(Open(context.Background(), path, Options{}))
		ok(b, db.Close())
	}
}
