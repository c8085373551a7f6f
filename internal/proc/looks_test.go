package proc

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/backends"
)

// Callers that arrive while a scan is delayed share it; later callers get a
// later one.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &Looks{rest: time.Now().Add(time.Hour)}
		const many = 20
		got := make([]*sight, many)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = l.look(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one waits for the scan, the others for it
		wg.Wait()
		for _, s := range got {
			if s == nil || s != got[0] {
				t.Fatalf("twenty who asked together: %v", got)
			}
		}
		if s, err := l.look(); err != nil || s == got[0] {
			t.Errorf("who asked after it was told what had been seen before: %v", err)
		}
	})
}

// Trees ended together with shared scans end as they do one by one: processes
// that ignore SIGTERM after their grace, those without a mark by their parent.
func TestKillTreesTogether(t *testing.T) {
	t.Parallel()
	const many = 3
	var looks Looks
	var trees [many][]backends.ProcID
	dir := t.TempDir()
	for i := range trees {
		file := filepath.Join(dir, fmt.Sprint("up", i))
		_, id := run(t, fmt.Sprint("g-together-", i), "tree", file)
		eventually(t, "the tree is up", func() bool {
			kids := []backends.ProcID{byFile(t, file+".2."), byFile(t, file+".1.")}
			trees[i] = append([]backends.ProcID{id}, kids...)
			return !slices.Contains(kids, backends.ProcID{})
		})
	}
	var wg sync.WaitGroup
	for i, tree := range trees {
		wg.Go(func() {
			n, err := looks.KillTree(context.Background(), nil, tree[:1], fmt.Sprint("g-together-", i), 50*time.Millisecond)
			if err != nil || n != len(tree) {
				t.Errorf("tree %d: ended %d of %d, %v", i, n, len(tree), err)
			}
		})
	}
	wg.Wait()
	for _, id := range slices.Concat(trees[:]...) {
		if Alive(id) {
			t.Errorf("%d survived", id.PID)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ  string
		gens     []string
		detached bool
	}{
		{environ: ""},
		{environ: "A=1\x00B=2\x00"},
		{environ: "A=1\x00TEAMCTL_GENERATION=g\x00", gens: []string{"g"}},
		{environ: "TEAMCTL_GENERATION=g\x00TEAMCTL_GENERATION=h", gens: []string{"g", "h"}},
		{environ: "TEAMCTL_GENERATION=\x00XTEAMCTL_GENERATION=g\x00"},
		{environ: "TEAMCTL_GENERATION=g\x00" + EnvDetached + "=1\x00", gens: []string{"g"}, detached: true},
		{environ: EnvDetached + "=10\x00" + EnvDetached + "=0\x00"},
	} {
		gens, detached := marks([]byte(c.environ))
		if !slices.Equal(gens, c.gens) || detached != c.detached {
			t.Errorf("%q: %v, detached %v", c.environ, gens, detached)
		}
	}
}
