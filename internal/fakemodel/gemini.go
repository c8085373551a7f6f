package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/teamctl/teamctl/internal/script"
)

// gemini is Google's generateContent protocol: POST /v1beta/models/MODEL:METHOD.
type gemini struct {
	model  string
	stream bool
}

// geminiCall serves the methods of a model.
func (s *Server) geminiCall(w http.ResponseWriter, r *http.Request) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch method {
	case "generateContent", "streamGenerateContent":
		s.answer(w, r, gemini{model: model, stream: method == "streamGenerateContent"})
	case "countTokens":
		constant(`{"totalTokens":100}`)(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (gemini) name() string { return "gemini" }

func (g gemini) ask(body []byte) (question, error) {
	var in struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse *struct {
					Response json.RawMessage
				}
			}
		}
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
		GenerationConfig struct {
			ResponseMimeType string
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return question{}, fmt.Errorf("read a generateContent request: %w", err)
	}
	q := question{model: g.model, stream: g.stream, json: in.GenerationConfig.ResponseMimeType == "application/json"}
	for _, c := range in.Contents {
		p := script.Part{Model: c.Role == "model"}
		var text []string
		for _, x := range c.Parts {
			if x.Text != "" {
				text = append(text, x.Text)
			}
			if x.FunctionResponse != nil {
				p.Tool = true
				text = append(text, string(x.FunctionResponse.Response))
			}
		}
		p.Text = strings.Join(text, "\n")
		q.parts = append(q.parts, p)
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			q.tools = append(q.tools, script.Tool{Name: f.Name})
		}
	}
	return q, nil
}

func (gemini) whole(r reply) any {
	p := obj{"text": r.say}
	if r.call != nil {
		p = obj{"functionCall": obj{"name": r.call.Name, "args": r.input}}
	}
	return obj{
		"candidates":    []any{obj{"content": obj{"role": "model", "parts": []any{p}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": obj{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
		"modelVersion":  r.model, "responseId": r.s.id("resp"),
	}
}

func (g gemini) events(r reply) []event { return []event{{data: g.whole(r)}} }

func (gemini) fail(status int, words string) any {
	return obj{"error": obj{"code": status, "message": words, "status": "UNAVAILABLE"}}
}
