package oracle

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// streams are long answers of one text, a delta of 40 bytes at a time.
var streams = map[string]struct{ begin, delta, end string }{
	"messages": {
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"0123456789012345678901234567890123456789\"}}\n\n",
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	"chat": {
		"",
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"0123456789012345678901234567890123456789\"},\"finish_reason\":null}]}\n\n",
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	},
	"responses": {
		"",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"0123456789012345678901234567890123456789\"}\n\n",
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n",
	},
}

// reads has the official SDKs read a stream, and put nothing together.
var reads = map[string]func(b *testing.B, c *http.Client){
	"messages": func(b *testing.B, c *http.Client) {
		client := anthropic.NewClient(anthropicoption.WithHTTPClient(c), anthropicoption.WithAPIKey("k"))
		drain(b, client.Messages.NewStreaming(b.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1}))
	},
	"chat": func(b *testing.B, c *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("k"))
		drain(b, client.Chat.Completions.NewStreaming(b.Context(), openai.ChatCompletionNewParams{Model: "m"}))
	},
	"responses": func(b *testing.B, c *http.Client) {
		client := openai.NewClient(option.WithHTTPClient(c), option.WithAPIKey("k"))
		drain(b, client.Responses.NewStreaming(b.Context(), responses.ResponseNewParams{Model: "m"}))
	},
}

func drain(b *testing.B, s interface {
	Next() bool
	Err() error
}) {
	for s.Next() {
	}
	if s.Err() != nil {
		b.Fatal(s.Err())
	}
}

// BenchmarkDecode reads 10 MB of events: we make an answer of them, the official SDKs make
// nothing.
func BenchmarkDecode(b *testing.B) {
	for name, s := range streams {
		body := s.begin + strings.Repeat(s.delta, (10<<20)/len(s.delta)) + s.end
		c := &http.Client{Transport: &canned{kind: "text/event-stream", body: body}}
		p := protocols[name]
		b.Run(fmt.Sprintf("%s/ours", name), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_, err := p.ours(wire.Endpoint{Name: "o", BaseURL: "http://oracle.test", Client: c}).
					Stream(b.Context(), model.Request{Model: "m", Messages: []model.Message{user("go")}}, func(model.Delta) {})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%s/theirs", name), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				reads[name](b, c)
			}
		})
	}
}
