package hook

import (
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// maxCounted is how much of a transcript one hook reads; the next hook continues there.
const maxCounted = 32 << 20

// usage returns the usage of the conversation according to its transcript, nil if there is nothing
// to report. usage.json in the bundle records the position, so that each hook reads only new text.
func (r *run) usage() *team.Usage {
	if r.hook.Transcript == "" || !adapter.CountsTranscript(r.CLI, r.Event) {
		return nil
	}
	c := r.readCounted()
	if c.Conversation != r.hook.Conversation {
		c = adapter.Counted{Conversation: r.hook.Conversation}
	}
	before := c.Offset
	f, err := regular.Open(r.hook.Transcript)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // read only
	if info, err := f.Stat(); err != nil || info.Size() < c.Offset {
		c = adapter.Counted{Conversation: r.hook.Conversation} // another file with this name
	}
	if _, err := f.Seek(c.Offset, io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCounted))
	if err != nil {
		return nil
	}
	c.Count(r.CLI, data)
	if c.Offset == before && before > 0 {
		return &c.Total
	}
	if data, err = json.Marshal(c); err == nil {
		_ = atomicfile.Write(r.countedFile(), data, 0o600, false)
	}
	return &c.Total
}

// counted returns what earlier hooks have counted in this conversation.
func (r *run) counted() *team.Usage {
	if c := r.readCounted(); c.Conversation == r.hook.Conversation && c.Offset > 0 {
		return &c.Total
	}
	return nil
}

func (r *run) countedFile() string { return filepath.Join(string(r.bundle), "usage.json") }

func (r *run) readCounted() (c adapter.Counted) {
	if data, err := regular.ReadFile(r.countedFile()); err == nil {
		_ = json.Unmarshal(data, &c) // without the file everything is counted again
	}
	return c
}
