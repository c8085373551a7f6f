package ledger

import (
	"encoding/json"
	"fmt"
)

// MaxEntryText is the maximum size in bytes of a text within its entry; a longer one is in a file.
const MaxEntryText = 32 << 10

// ShortText returns what an entry has of a text that is in a file: its first characters, its size and
// the file's name, which the meta of the entry has as long.
func ShortText(text string, begins int, file string) string {
	rs := []rune(text)
	if len(rs) > begins {
		rs = append(rs[:begins-1:begins-1], '…')
	}
	return fmt.Sprintf("%s\n[%d bytes, in the file %s]", string(rs), len(text), file)
}

// Piece is a part of the content of an entry whose whole text is in a file: an item of a backlog.
type Piece struct {
	At   int    `json:"at"`   // in the content, bytes
	Size int    `json:"size"` // of what the content has in its place, bytes
	File string `json:"file"`
}

// WholeText returns a content with the whole text of each piece, in order, in its place. A piece
// whose text is not there stays as it is.
func WholeText(content string, pieces []Piece, text func(file string) (string, bool)) string {
	out, at := "", 0
	for _, p := range pieces {
		if p.At < at || p.Size < 0 || p.At+p.Size > len(content) {
			continue // not written by drain
		}
		if whole, ok := text(p.File); ok {
			out += content[at:p.At] + whole
			at = p.At + p.Size
		}
	}
	return out + content[at:]
}

// backlogEntry is the entry that items of a backlog become. Its meta has their tasks, in the words
// of their senders: a turn that begins with a backlog and is interrupted quotes those, and not the
// backlog with the tokens in it.
type backlogEntry struct {
	content string
	meta    struct {
		Task   string  `json:"task,omitempty"`
		Pieces []Piece `json:"pieces,omitempty"`
	}
}

func (e *backlogEntry) add(text string, meta json.RawMessage) {
	var facts struct {
		Task json.RawMessage `json:"task"` // an announce has an object there
		Long string          `json:"long"`
	}
	_ = json.Unmarshal(meta, &facts) // none: it has neither
	if e.content += "\n"; facts.Long != "" {
		e.meta.Pieces = append(e.meta.Pieces, Piece{At: len(e.content), Size: len(text), File: facts.Long})
	}
	e.content += text
	var task string
	if json.Unmarshal(facts.Task, &task) != nil || task == "" {
		task = text
	}
	if e.meta.Task != "" {
		e.meta.Task += "; "
	}
	e.meta.Task += task
}
