package tool

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/ledger"
)

// Scratchpad reads the shared document of the current run.
func (t *Team) Scratchpad(ctx context.Context) (ledger.Scratchpad, error) {
	return t.Ledger.Scratchpad(ctx)
}

// ScratchpadMerge sets the top-level keys of patch in the shared document. expect
// is the version that the patch was computed from; nil merges into whatever is
// there, with as many tries as it takes.
func (t *Team) ScratchpadMerge(ctx context.Context, c Caller, patch json.RawMessage, expect *int64) (ledger.Scratchpad, error) {
	if err := t.may(ctx, c, OpScratchpad); err != nil {
		return ledger.Scratchpad{}, err
	}
	if expect != nil {
		return t.as(c).MergeScratchpad(ctx, patch, *expect)
	}
	return t.as(c).UpdateScratchpad(ctx, func(ledger.Scratchpad) (json.RawMessage, error) { return patch, nil })
}

// ScratchpadWatch calls each with the shared document as it is and with every
// version that follows, until ctx ends or each fails. Versions that are replaced
// before they are read are left out.
func (t *Team) ScratchpadWatch(ctx context.Context, each func(ledger.Scratchpad) error) (err error) {
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	seen := ledger.Scratchpad{Version: -1}
	for {
		pad, err := t.Ledger.Scratchpad(ctx)
		if err != nil {
			return err
		}
		if pad.Version != seen.Version || pad.Run != seen.Run {
			seen = pad
			if err := each(pad); err != nil {
				return err
			}
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
