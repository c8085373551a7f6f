package fakemodel

import "strings"

// protocols are those that requests are recorded with, by name.
var protocols = map[string]protocol{"anthropic": anthropic{}, "responses": responses{}, "chat": chat{}, "gemini": gemini{}}

// Came returns everything in the conversation of a request that is not an answer of the
// model, oldest first. A body that cannot be read gives "".
func (r Request) Came() string {
	p, ok := protocols[r.Protocol]
	if !ok {
		return ""
	}
	q, err := p.ask([]byte(r.Body))
	if err != nil {
		return ""
	}
	var out []string
	for _, part := range q.parts {
		if !part.Model {
			out = append(out, part.Text)
		}
	}
	return strings.Join(out, "\n")
}
