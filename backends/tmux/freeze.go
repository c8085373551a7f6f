package tmux

import (
	"context"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/shim"
)

var _ backends.Freezer = (*attached)(nil)

// Freeze is backends.Freezer.
func (a *attached) Freeze(ctx context.Context, on bool) error {
	return shim.Freeze(ctx, a.launch, a.proc, on)
}

// Frozen is backends.Freezer.
func (a *attached) Frozen() (bool, error) { return shim.Frozen(a.launch, a.proc) }
