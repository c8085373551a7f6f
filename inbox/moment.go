package inbox

import (
	"errors"
	"io/fs"
	"time"
)

// A client that rewrites a mailbox in place truncates it first. If its lock is
// unknown to teamctl, its write is visible half done; a file that is empty or
// incomplete therefore counts as such only if it has not been written to for a
// moment.
const (
	moment = 500 * time.Millisecond
	// momentsEnd limits how often a file is checked again that keeps changing,
	// or whose time is in the future.
	momentsEnd = 4 * moment
)

// rested returns errAgain while another program may be in the middle of a write
// to the file.
func (h *holding) rested() error {
	info, err := h.root.Lstat(h.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if time.Since(info.ModTime()) < moment && time.Since(h.since) < momentsEnd {
		return errAgain
	}
	return nil
}
