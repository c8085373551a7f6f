package adapter

import (
	"bytes"
	"encoding/json"
)

// FailsInTranscript reports whether the end of a turn tells nothing of how it has ended,
// so that its transcript has to be asked.
func FailsInTranscript(cli, event string) bool { return cli == Gemini && event == "AfterAgent" }

// FailedTurn is the error that has ended the last turn of a transcript, of which tail is
// the end; "" where it ended otherwise. Gemini CLI writes an error as a record of its own
// before it calls its hook (seen in 0.61), and what it says of itself after it.
func FailedTurn(tail []byte) string {
	for len(tail) > 0 {
		var line []byte
		tail = bytes.TrimRight(tail, "\n")
		if i := bytes.LastIndexByte(tail, '\n'); i >= 0 {
			tail, line = tail[:i], tail[i+1:]
		} else {
			tail, line = nil, tail
		}
		var l struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(line, &l) != nil {
			continue // the first one may be cut off
		}
		switch l.Type {
		case "error":
			var words string
			if json.Unmarshal(l.Content, &words) != nil || words == "" {
				words = "an error that its transcript does not name"
			}
			return words
		case "user", "gemini":
			return ""
		}
	}
	return ""
}

// Unanswered reports whether the hook of the end of a turn shows that the model has not
// answered what the turn had last: Gemini CLI calls it for a turn that was cancelled, too.
// Its answer is that of the whole prompt, with what was said before an earlier hook had the
// turn go on; same tells that nothing was said since.
func Unanswered(cli string, in HookIn, same bool) bool {
	return cli == Gemini && (in.Answer == "[no response text]" || in.StopActive && same)
}
