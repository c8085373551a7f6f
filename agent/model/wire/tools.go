package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
)

// noInput is the schema of a tool that gives none, or none that can be read.
const noInput = `{"type":"object","properties":{}}`

// Tools returns tools sorted by name, which keeps requests the same from one to the next.
func Tools(all []model.Tool) []model.Tool {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b model.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for i := range out {
		if _, err := ParseObject(out[i].Schema); err != nil || !json.Valid(out[i].Schema) {
			out[i].Schema = json.RawMessage(noInput)
		}
	}
	return out
}

// Input is a call's input as the model wrote it. What is not JSON becomes a JSON string,
// which no tool takes: the model is told, and nothing is guessed.
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
	return err == nil && json.Valid([]byte(text))
}
