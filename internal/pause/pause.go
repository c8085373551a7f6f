// Package pause waits for a time that a context may cut short.
package pause

import (
	"context"
	"time"
)

// For returns after d, or with ctx's error when ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
