package bundle

import (
	"io"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/regular"
)

// TailLines is the number of lines of output in an Exit.
const TailLines = 20

// Tail returns the end of a member's log as text: a few lines without control
// sequences. It includes the rotated log if the current one has just begun.
func Tail(path string) string { return TailOf(path, 4096, TailLines) }

// TailOf is Tail with the given maximum number of bytes and lines.
func TailOf(path string, most, lines int) string {
	b := end(path, most)
	if len(b) < most {
		b = end(path+".1", most-len(b)) + b
	}
	return LastLines(plain.Text(b), lines)
}

// LastLines returns the end of a text, without trailing empty lines and blanks.
func LastLines(text string, n int) string {
	t := strings.Split(strings.TrimRight(text, "\n "), "\n")
	if len(t) > n {
		t = t[len(t)-n:]
	}
	return strings.Join(t, "\n")
}

func end(path string, most int) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if fi, err := f.Stat(); err == nil && fi.Size() > int64(most) {
		if _, err := f.Seek(int64(-most), io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return ""
	}
	return string(b)
}
