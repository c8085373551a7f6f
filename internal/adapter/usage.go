package adapter

import (
	"bytes"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Counted is what has been counted of a transcript so far: a file of JSON lines that
// only grows. Claude Code writes an answer as one line per block, each with the usage
// of the whole answer as it stood then, and Gemini CLI writes it again when its tools
// have run: of lines with one id the last one counts.
type Counted struct {
	Conversation string     `json:"conversation"`
	Offset       int64      `json:"offset"` // of the first byte that was not read
	LastID       string     `json:"lastId,omitempty"`
	Last         team.Usage `json:"last,omitzero"`  // of the answer LastID
	Total        team.Usage `json:"total,omitzero"` // with Last
}

// transcripts reads a line of the transcript of each CLI that keeps one: the id of an
// answer and what it used, ok is false for any other line.
var transcripts = map[string]func(line []byte) (id string, u team.Usage, ok bool){
	Claude: claudeLine,
	Gemini: geminiLine,
}

// CountsTranscript reports whether the transcript is to be read on after an event.
func CountsTranscript(cli, event string) bool {
	return transcripts[cli] != nil && (EndsTool(cli, event) || EndsTurn(cli, event))
}

// Count adds the whole lines of what follows at Offset in the transcript of a CLI.
func (c *Counted) Count(cli string, data []byte) {
	read := transcripts[cli]
	for read != nil {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return
		}
		c.Offset += int64(len(line)) + 1
		data = rest
		id, now, ok := read(line)
		if !ok || id == "" {
			continue
		}
		if id == c.LastID {
			c.Total.InputTokens -= c.Last.InputTokens
			c.Total.OutputTokens -= c.Last.OutputTokens
			c.Total.CachedTokens -= c.Last.CachedTokens
		}
		c.LastID, c.Last = id, now
		c.Total.InputTokens += now.InputTokens
		c.Total.OutputTokens += now.OutputTokens
		c.Total.CachedTokens += now.CachedTokens
	}
}

func claudeLine(line []byte) (id string, u team.Usage, ok bool) {
	var l struct {
		Type    string
		Message struct {
			ID    string
			Usage struct {
				InputTokens  int64 `json:"input_tokens"`
				OutputTokens int64 `json:"output_tokens"`
				CacheWrite   int64 `json:"cache_creation_input_tokens"`
				CacheRead    int64 `json:"cache_read_input_tokens"`
			}
		}
	}
	if !bytes.Contains(line, []byte(`"usage"`)) || json.Unmarshal(line, &l) != nil || l.Type != "assistant" {
		return "", u, false
	}
	n := l.Message.Usage
	u = team.Usage{InputTokens: n.InputTokens + n.CacheWrite + n.CacheRead, OutputTokens: n.OutputTokens, CachedTokens: n.CacheRead}
	return l.Message.ID, u, true
}

// geminiLine reads a record of chats/session-*.jsonl, as 0.61 writes it.
func geminiLine(line []byte) (id string, u team.Usage, ok bool) {
	var l struct {
		ID, Type string
		Tokens   *struct{ Input, Output, Cached, Thoughts, Tool int64 }
	}
	if !bytes.Contains(line, []byte(`"tokens"`)) || json.Unmarshal(line, &l) != nil || l.Type != "gemini" || l.Tokens == nil {
		return "", u, false
	}
	n := l.Tokens
	return l.ID, team.Usage{InputTokens: n.Input + n.Tool, OutputTokens: n.Output + n.Thoughts, CachedTokens: n.Cached}, true
}
