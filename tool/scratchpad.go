package tool

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/ledger"
)

// Scratchpad returns the shared document of the current run.
func (t *Team) Scratchpad(ctx context.Context) (ledger.Scratchpad, error) {
	return t.Ledger.Scratchpad(ctx)
}

// ScratchpadMerge sets the top-level keys of patch in the shared document. expect is the version
// from which the patch was computed; nil merges into the current version and retries on conflicts.
func (t *Team) ScratchpadMerge(ctx context.Context, c Caller, patch json.RawMessage, expect *int64) (ledger.Scratchpad, error) {
	if err := t.may(ctx, c, OpScratchpad); err != nil {
		return ledger.Scratchpad{}, err
	}
	if expect != nil {
		return t.as(c).MergeScratchpad(ctx, patch, *expect)
	}
	return t.as(c).UpdateScratchpad(ctx, func(ledger.Scratchpad) (json.RawMessage, error) { return patch, nil })
}

// ScratchpadWatch calls each with the current shared document and with every later version, until
// ctx ends or each fails. It skips versions that were replaced before they were read.
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
