package worktree

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Progress is the progress of a checkout, as git reports it. git reports it
// only for checkouts longer than two seconds (GIT_PROGRESS_DELAY).
type Progress struct {
	What    string `json:"what"` // "Updating files", "Filtering content"
	Percent int    `json:"percent"`
	Done    int    `json:"done"` // of Total files
	Total   int    `json:"total"`
}

// progressLine matches what git writes between two carriage returns.
var progressLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\S[^:]*): +(\d+)% \((\d+)/(\d+)\)`) })

// progressWriter splits git's stderr: it passes progress to tell and keeps the
// rest as the message of a failure.
type progressWriter struct {
	tell func(Progress)
	rest *capped
	part []byte // an incomplete line
}

func (w *progressWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		i := bytes.IndexAny(w.part, "\r\n")
		if i < 0 {
			return len(p), nil
		}
		w.line(string(w.part[:i]), w.part[i])
		w.part = w.part[i+1:]
	}
}

func (w *progressWriter) line(text string, end byte) {
	m := progressLine().FindStringSubmatch(strings.TrimRight(text, " "))
	if m == nil {
		_, _ = w.rest.Write(append([]byte(text), end))
		return
	}
	at := Progress{What: m[1]}
	at.Percent, _ = strconv.Atoi(m[2]) // the pattern allows only digits
	at.Done, _ = strconv.Atoi(m[3])
	at.Total, _ = strconv.Atoi(m[4])
	w.tell(at)
}

// flush processes an incomplete last line.
func (w *progressWriter) flush() {
	if len(w.part) > 0 {
		w.line(string(w.part), '\n')
		w.part = nil
	}
}
