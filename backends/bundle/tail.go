package bundle

import (
	"io"
	"regexp"
	"strings"

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
	return LastLines(Plain(b), lines)
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

// Plain strips control sequences (ECMA-48: CSI, OSC and other strings, escapes
// of two characters) and control characters except newline and tab.
func Plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	// Compiled here because the shim of a tmux pane never needs it.
	s = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]").ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
