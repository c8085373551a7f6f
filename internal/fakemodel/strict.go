package fakemodel

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Strict makes the server refuse, with the vendors' errors, what they refuse: a call without its
// result, sides that do not alternate, bad ids, empty blocks, changed signatures, and unknown
// fields. Its answers then contain reasoning, come in pieces, and count tokens, including cached
// ones.
func (s *Server) Strict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = true
}

func (s *Server) isStrict() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strict
}

// Refused returns the reasons of strict mode's refusals, in order: none for a client that follows
// the vendor's rules.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func (s *Server) refuse(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, why)
}

// count counts the tokens of a request: what an earlier one began with is in the cache.
func (s *Server) count(body string) tokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.strict {
		return tokens{input: 100, output: 10}
	}
	longest := 0
	for _, before := range s.cache {
		shorter := min(len(before), len(body))
		if before[:min(longest, shorter)] != body[:min(longest, shorter)] {
			continue // not byte by byte: bodies are long, and many
		}
		for longest < shorter && before[longest] == body[longest] {
			longest++
		}
	}
	s.cache = append(s.cache, body)
	return tokens{input: len(body) / 4, cached: longest / 4, output: 10}
}

// thought is the model's reasoning, and sign signs it: what is sent back is verified.
const thought = "I follow the script < & >."

func sign(s string) string {
	sum := sha256.Sum256([]byte("signed " + s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// node is a JSON object that is checked.
type node map[string]json.RawMessage

func (n node) text(key string) string {
	var s string
	_ = json.Unmarshal(n[key], &s) // not a string
	return s
}

func (n node) list(key string) []node {
	var out []node
	_ = json.Unmarshal(n[key], &out) // not a list
	return out
}

// only refuses fields that are not known.
func (n node) only(where string, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%s.%s: Extra inputs are not permitted", where, key)
		}
	}
	return nil
}

var goodID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// check refuses a body that the vendor would refuse.
func check(p protocol, body []byte) error {
	var n node
	if err := json.Unmarshal(body, &n); err != nil {
		return err
	}
	switch p.(type) {
	case anthropic:
		return checkMessages(n)
	case chat:
		return checkChat(n)
	case responses:
		return checkResponses(n)
	}
	return nil
}

func checkMessages(n node) error {
	err := n.only("request", "model", "max_tokens", "stream", "temperature", "thinking", "output_config", "tools", "tool_choice", "system", "messages", "metadata")
	if err != nil {
		return err
	}
	if len(n["max_tokens"]) == 0 {
		return fmt.Errorf("max_tokens: Field required")
	}
	for i, t := range n.list("tools") {
		if err := t.only(fmt.Sprintf("tools.%d", i), "name", "description", "input_schema", "cache_control"); err != nil {
			return err
		}
		if !goodID().MatchString(t.text("name")) || len(t["input_schema"]) == 0 || t["input_schema"][0] != '{' {
			return fmt.Errorf("tools.%d: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		}
	}
	marks := strings.Count(string(n["tools"])+string(n["system"])+string(n["messages"]), `"cache_control"`)
	if marks > 4 {
		return fmt.Errorf("A maximum of 4 blocks with cache_control may be provided. Found %d.", marks) //nolint:staticcheck // the vendor's words
	}
	msgs := n.list("messages")
	if len(msgs) == 0 {
		return fmt.Errorf("messages: at least one message is required")
	}
	var open []string // calls of the message before
	used := map[string]bool{}
	for i, m := range msgs {
		if want := []string{"user", "assistant"}[i%2]; m.text("role") != want {
			return fmt.Errorf("messages: roles must alternate between \"user\" and \"assistant\", found %q at %d", m.text("role"), i)
		}
		blocks := m.list("content")
		if len(blocks) == 0 && strings.TrimSpace(m.text("content")) == "" {
			return fmt.Errorf("messages.%d: all messages must have non-empty content", i)
		}
		var calls, results []string
		for j, b := range blocks {
			at := fmt.Sprintf("messages.%d.content.%d", i, j)
			var err error
			switch b.text("type") {
			case "text":
				err = b.only(at, "type", "text", "cache_control", "citations")
				if strings.TrimSpace(b.text("text")) == "" {
					err = fmt.Errorf("messages: text content blocks must be non-empty")
				}
			case "thinking":
				err = b.only(at, "type", "thinking", "signature")
				if b.text("signature") != sign(b.text("thinking")) {
					err = fmt.Errorf("%s: Invalid `signature` in `thinking` block", at)
				}
			case "tool_use":
				err = b.only(at, "type", "id", "name", "input", "cache_control")
				if id := b.text("id"); !goodID().MatchString(id) || used[id] {
					err = fmt.Errorf("%s.tool_use.id: `tool_use` ids must be unique and match '^[a-zA-Z0-9_-]+$'", at)
				}
				if in := b["input"]; len(in) == 0 || in[0] != '{' {
					err = fmt.Errorf("%s.tool_use.input: Input should be a valid dictionary", at)
				}
				used[b.text("id")] = true
				calls = append(calls, b.text("id"))
			case "tool_result":
				err = b.only(at, "type", "tool_use_id", "content", "is_error", "cache_control")
				if id := b.text("tool_use_id"); !slices.Contains(open, id) || slices.Contains(results, id) || len(results) < j {
					err = fmt.Errorf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message", at, id)
				}
				results = append(results, b.text("tool_use_id"))
			default:
				err = fmt.Errorf("%s: Input tag %q found using 'type' does not match any of the expected tags", at, b.text("type"))
			}
			if err != nil {
				return err
			}
		}
		if len(results) < len(open) {
			return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message", i, strings.Join(open, ", "))
		}
		open = calls
	}
	if len(open) > 0 || len(msgs)%2 == 0 {
		return fmt.Errorf("this model does not support assistant message prefill. The conversation must end with a user message")
	}
	return nil
}

func checkChat(n node) error {
	err := n.only("request", "model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "reasoning_effort", "prompt_cache_key", "tools", "tool_choice", "messages")
	if err != nil {
		return err
	}
	var open []string
	used := map[string]bool{}
	for i, m := range n.list("messages") {
		at := fmt.Sprintf("messages.[%d]", i)
		role := m.text("role")
		if role != "tool" && len(open) > 0 {
			return fmt.Errorf("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", ")) //nolint:staticcheck // the vendor's words
		}
		var err error
		switch role {
		case "system", "user":
			err = m.only(at, "role", "content")
			if strings.TrimSpace(m.text("content")) == "" {
				err = fmt.Errorf("%s.content: empty", at)
			}
		case "assistant":
			err = m.only(at, "role", "content", "tool_calls", "reasoning_content", "reasoning_details")
			calls := m.list("tool_calls")
			if len(calls) == 0 && strings.TrimSpace(m.text("content")) == "" {
				err = fmt.Errorf("%s.content: empty", at)
			}
			for _, c := range calls {
				if e := c.only(at+".tool_calls", "id", "type", "function", "extra_content"); e != nil {
					err = e
				}
				id := c.text("id")
				if len(id) > 40 || id == "" || used[id] {
					err = fmt.Errorf("Invalid '%s.tool_calls[0].id': string too long. Expected a string with maximum length 40", at) //nolint:staticcheck // the vendor's words
				}
				var f struct{ Name, Arguments *string }
				if json.Unmarshal(c["function"], &f) != nil || f.Name == nil || f.Arguments == nil {
					err = fmt.Errorf("%s.tool_calls: function without name and arguments", at)
				}
				if extra := string(c["extra_content"]); extra != "" && !strings.Contains(extra, sign(id)) {
					err = fmt.Errorf("thought signature is not valid")
				}
				used[id] = true
				open = append(open, id)
			}
		case "tool":
			err = m.only(at, "role", "content", "tool_call_id")
			k := slices.Index(open, m.text("tool_call_id"))
			if k < 0 {
				return fmt.Errorf("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.") //nolint:staticcheck // the vendor's words
			}
			open = slices.Delete(open, k, k+1)
		default:
			err = fmt.Errorf("%s.role: Invalid value: %q", at, role)
		}
		if err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	return nil
}

func checkResponses(n node) error {
	err := n.only("request", "model", "stream", "store", "max_output_tokens", "temperature", "reasoning", "include", "prompt_cache_key", "tools", "tool_choice", "instructions", "input")
	if err != nil {
		return err
	}
	open, used := map[string]bool{}, map[string]bool{}
	for i, m := range n.list("input") {
		at := fmt.Sprintf("input[%d]", i)
		var err error
		switch typ := m.text("type"); typ {
		case "message":
			err = m.only(at, "type", "role", "content", "id", "status")
			for _, c := range m.list("content") {
				want := "input_text"
				if m.text("role") == "assistant" {
					want = "output_text"
				}
				if c.text("type") != want || strings.TrimSpace(c.text("text")) == "" {
					err = fmt.Errorf("Invalid value: '%s.content'. Supported values are: %s", at, want) //nolint:staticcheck // the vendor's words
				}
			}
			if len(open) > 0 {
				err = fmt.Errorf("No tool output found for function call %s.", slices.Sorted(maps.Keys(open))[0]) //nolint:staticcheck // the vendor's words
			}
		case "reasoning":
			err = m.only(at, "type", "id", "summary", "encrypted_content", "content", "status")
			if m.text("encrypted_content") != sign(m.text("id")) {
				err = fmt.Errorf("The encrypted content for item %s could not be verified.", m.text("id")) //nolint:staticcheck // the vendor's words
			}
		case "function_call":
			err = m.only(at, "type", "id", "call_id", "name", "arguments", "status")
			id := m.text("call_id")
			if id == "" || len(id) > 64 || used[id] {
				err = fmt.Errorf("Invalid '%s.call_id'", at) //nolint:staticcheck // the vendor's words
			}
			open[id], used[id] = true, true
		case "function_call_output":
			err = m.only(at, "type", "call_id", "output")
			if id := m.text("call_id"); !open[id] {
				err = fmt.Errorf("No tool call found for function call output with call_id %s.", id) //nolint:staticcheck // the vendor's words
			}
			delete(open, m.text("call_id"))
		default:
			err = fmt.Errorf("Invalid value: %q at %s.type", typ, at) //nolint:staticcheck // the vendor's words
		}
		if err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("No tool output found for function call %s.", slices.Sorted(maps.Keys(open))[0]) //nolint:staticcheck // the vendor's words
	}
	return nil
}
