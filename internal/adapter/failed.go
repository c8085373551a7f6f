package adapter

import (
	"bytes"
	"encoding/json"
)

// FailsInTranscript reports whether the hook at the end of a turn does not say how the turn ended,
// so that the transcript must be read.
func FailsInTranscript(cli, event string) bool { return cli == Gemini && event == "AfterAgent" }

// FailedTurn returns the error that ended the last turn of the transcript whose end is tail, "" if
// the turn did not fail. Gemini CLI writes an error as a separate record before it calls its hook,
// and status records after it (seen in 0.61).
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
			continue // the first record may be cut off
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

// Unanswered reports whether the hook at the end of a turn shows that the model has not answered
// the turn's last input: Gemini CLI calls this hook also for a cancelled turn. Its answer covers
// the whole prompt, including text from before an earlier hook continued the turn; same means that
// no text was added since.
func Unanswered(cli string, in HookIn, same bool) bool {
	return cli == Gemini && (in.Answer == "[no response text]" || in.StopActive && same)
}
