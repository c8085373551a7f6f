package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
)

// noInput is the schema of a tool without one, or with an unreadable one.
const noInput = `{"type":"object","properties":{}}`

// Tools returns tools sorted by name, which keeps requests identical.
func Tools(all []model.Tool) []model.Tool {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b model.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		if _, err := ParseObject(out[i].Schema); err != nil {
			out[i].Schema = json.RawMessage(noInput)
		}
	}
	return out
}

// Input returns a call's input unchanged. Text that is not JSON becomes a JSON string, which no
// tool accepts: the model is notified, and nothing is guessed.
func Input(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return Quote(text)
}

// Whole reports whether the text of an input is complete.
func Whole(text string) bool {
	_, err := ParseObject([]byte(text))
	return err == nil
}
