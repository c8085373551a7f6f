package adapter

import (
	"bytes"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// Counted is what has been counted of a Claude Code transcript so far: a file of JSON
// lines that only grows. An answer is written as one line per block, each with the
// usage of the whole answer as it stood then, so that the last one counts.
type Counted struct {
	Conversation string     `json:"conversation"`
	Offset       int64      `json:"offset"` // of the first byte that was not read
	LastID       string     `json:"lastId,omitempty"`
	Last         team.Usage `json:"last,omitzero"`  // of the answer LastID
	Total        team.Usage `json:"total,omitzero"` // with Last
}

// Count adds the whole lines of what follows at Offset.
func (c *Counted) Count(data []byte) {
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return
		}
		c.Offset += int64(len(line)) + 1
		data = rest
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
		if !bytes.Contains(line, []byte(`"usage"`)) || json.Unmarshal(line, &l) != nil || l.Type != "assistant" || l.Message.ID == "" {
			continue
		}
		u := l.Message.Usage
		now := team.Usage{InputTokens: u.InputTokens + u.CacheWrite + u.CacheRead, OutputTokens: u.OutputTokens, CachedTokens: u.CacheRead}
		if l.Message.ID == c.LastID {
			c.Total.InputTokens -= c.Last.InputTokens
			c.Total.OutputTokens -= c.Last.OutputTokens
			c.Total.CachedTokens -= c.Last.CachedTokens
		}
		c.LastID, c.Last = l.Message.ID, now
		c.Total.InputTokens += now.InputTokens
		c.Total.OutputTokens += now.OutputTokens
		c.Total.CachedTokens += now.CachedTokens
	}
}
