package courier

import (
	"io"
	"strings"

	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// RecordTail is how much of a transcript is read, from its end.
const RecordTail = 16 << 20

// Kernel returns the parts of a message that a transcript with this message contains: its id and
// its whole text. Other attributes may change with the team.
func Kernel(m team.Mail) []string {
	_, element, framed := strings.Cut(m.Text, "\n\n")
	if !framed {
		return []string{m.Text}
	}
	head, body, ok := strings.Cut(element, ">\n")
	if id := `message_id="` + m.ID + `"`; ok && strings.Contains(head, id) {
		return []string{id, ">\n" + body}
	}
	return []string{element}
}

// ReadTail returns the end of a file, at most most bytes and nothing before offset after; nil if
// the file cannot be read.
func ReadTail(path string, most, after int64) []byte {
	f, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	if _, err := f.Seek(max(after, info.Size()-most), io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return data
}
