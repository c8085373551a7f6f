package inbox

import (
	"errors"
	"io/fs"
	"time"
)

// A client that rewrites a mailbox in place empties the file first. Without a lock that
// we know of, its write is seen half done: so a file that is empty or cannot be read
// to its end counts as such only once nobody has written to it for a moment.
const (
	moment = 500 * time.Millisecond
	// momentsEnd bounds how often a file is looked at again that somebody keeps changing,
	// or whose time lies in the future.
	momentsEnd = 4 * moment
)

// rested is errAgain while the file may be in the middle of another program's write.
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
