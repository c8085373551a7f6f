package tools

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/teamctl/teamctl/internal/atomicfile"
)

// Limits of one result.
const (
	MaxLines = 2000
	MaxBytes = 50 << 10
	maxLine  = 2000 // bytes shown of a line
)

// binary reports whether content is not text: its first 8 kB contain a NUL byte, or are not UTF-8.
func binary(b []byte) bool {
	head := b[:min(len(b), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for i := 0; i < utf8.UTFMax && len(head) < len(b) && !utf8.Valid(head); i++ {
		head = head[:len(head)-1] // its last character may be incomplete
	}
	return !utf8.Valid(head)
}

// cutLine shortens a line that is too long to be shown.
func cutLine(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return fmt.Sprintf("%s... [%d bytes more]", strings.ToValidUTF8(line[:maxLine], ""), len(line)-maxLine)
}

// Fit converts a text returned by a tool to an Out: all of it, or its beginning with the name of
// the file that has the rest.
func (s *Space) Fit(tool, text string) (Out, error) { return s.fit(tool, text) }

// fit converts a text to an Out: all of it, or its beginning with the name of the file that has
// the rest.
func (s *Space) fit(tool, text string) (Out, error) {
	text = s.cfg.Secrets.Hide(text)
	if len(text) <= MaxBytes && strings.Count(text, "\n") <= MaxLines {
		return Out{Text: text}, nil
	}
	head := text[:min(len(text), MaxBytes)]
	for i, n := 0, 0; ; n++ {
		j := strings.IndexByte(head[i:], '\n')
		if j < 0 {
			break
		}
		if i += j + 1; n == MaxLines-1 {
			head = head[:i]
			break
		}
	}
	if len(head) == MaxBytes {
		if i := strings.LastIndexByte(head, '\n'); i > MaxBytes/2 {
			head = head[:i+1]
		}
	}
	head = strings.ToValidUTF8(head, "")
	rest := fmt.Sprintf("%d of %d bytes", len(head), len(text))
	file, err := s.Spill(tool, text)
	switch {
	case err != nil:
		return Out{}, err
	case file == "":
		return Out{Text: head + "\n[" + rest + "]"}, nil
	}
	return Out{Text: fmt.Sprintf("%s\n[%s; the whole is in %s]", strings.TrimRight(head, "\n"), rest, file), File: file}, nil
}

// Spill writes a text durably to a file of the bundle, and returns its path; "" without a bundle.
func (s *Space) Spill(tool, text string) (string, error) {
	if s.cfg.Outputs == "" {
		return "", nil
	}
	return Spill(s.cfg.Outputs, tool, text)
}

// Spill writes a text to a new file of dir that survives a power failure, and returns its path.
func Spill(dir, tool, text string) (string, error) {
	file, err := atomicfile.WriteNew(dir, tool, text)
	if err != nil {
		return "", fmt.Errorf("keep a long result: %w", err)
	}
	return file, nil
}
