package inbox

import (
	"fmt"
	"sync"
	"testing"
)

// A hundred concurrent writers, each with a Box of its own for the same file,
// lose nothing.
func TestHundredWritersLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 100, 3
	b, dir := newBox(t)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			box := boxIn(t, dir)
			for i := range each {
				if err := box.Append(bg(t), numbered(fmt.Sprintf("w%d", w), i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	inOrder(t, entries(t, b), writers*each)
}
