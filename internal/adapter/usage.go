package adapter

import (
	"bytes"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Counted is the usage counted in a transcript so far. A transcript is a growing file of JSON
// lines. Claude Code writes an answer as one line per block, each with the usage of the whole
// answer so far, and Gemini CLI writes an answer again after its tools have run: of lines with the
// same id the last one counts.
type Counted struct {
	Conversation string     `json:"conversation"`
	Offset       int64      `json:"offset"` // of the first unread byte
	LastID       string     `json:"lastId,omitempty"`
	Last         team.Usage `json:"last,omitzero"`  // of the answer LastID
	Total        team.Usage `json:"total,omitzero"` // including Last
}

// transcripts has a parser for the transcript lines of each CLI that keeps one: the id of an
// answer and its usage; ok is false for any other line.
var transcripts = map[string]func(line []byte) (id string, u team.Usage, ok bool){
	Claude: claudeLine,
	Gemini: geminiLine,
}

// CountsTranscript reports whether to continue reading the transcript after an event.
func CountsTranscript(cli, event string) bool {
	return transcripts[cli] != nil && (EndsTool(cli, event) || EndsTurn(cli, event))
}

// Count adds the complete lines of data, which starts at Offset in the transcript of a CLI.
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

// geminiLine parses a record of chats/session-*.jsonl, as 0.61 writes it.
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
