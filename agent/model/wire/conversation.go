package wire

import (
	"crypto/sha256"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/agent/model"
)

const (
	noResult = "No result of this call was recorded."
	goOn     = "Go on."
	left     = "(The beginning of the conversation is left out.)"
)

// Conversation returns the messages of a request in a form that every protocol accepts:
//
//   - the two sides alternate, beginning and ending with the user's;
//   - each message that follows calls begins with exactly one result for each of them, in order; a
//     missing one is added as failed, and one without a call is dropped;
//   - no part and no message is empty, and no two calls share an id;
//   - Raw is present only if self produced it and it has the same calls as the parts. Ids of other
//     models become nine letters and digits, which every protocol accepts.
//
// callsOf returns the ids of the calls in raw content, in order; false if it cannot be parsed.
func Conversation(msgs []model.Message, self model.Ref, callsOf func(raw []byte) ([]string, bool)) []model.Message {
	c := conversation{self: self, callsOf: callsOf, used: map[string]bool{}, results: map[string]model.Result{}}
	for _, m := range msgs {
		if m.Role == model.RoleAssistant {
			c.assistant(m)
		} else {
			c.user(m)
		}
	}
	c.flush()
	if n := len(c.out); n == 0 || c.out[n-1].Role == model.RoleAssistant {
		c.say(goOn)
	}
	return c.out
}

// NotBlank returns the request without blank texts, which no protocol accepts.
func NotBlank(r model.Request) model.Request {
	if strings.TrimSpace(r.System) == "" {
		r.System = ""
	}
	if strings.TrimSpace(r.Ephemeral) == "" {
		r.Ephemeral = ""
	}
	return r
}

type conversation struct {
	self    model.Ref
	callsOf func([]byte) ([]string, bool)
	out     []model.Message
	used    map[string]bool // ids of calls
	calls   []call          // of the model's last message

	// What arrived since.
	results map[string]model.Result
	texts   []model.Part
	cache   bool
}

// call has the id of a call in the message, and its id in the request.
type call struct{ was, id string }

func (c *conversation) say(text string) {
	c.out = append(c.out, model.Message{Role: model.RoleUser, Parts: []model.Part{{Text: text}}})
}

func (c *conversation) user(m model.Message) {
	for _, p := range m.Parts {
		switch {
		case p.Result != nil:
			if _, ok := c.results[p.Result.CallID]; !ok {
				c.results[p.Result.CallID] = *p.Result
			}
		case strings.TrimSpace(p.Text) != "":
			c.texts = append(c.texts, model.Part{Text: p.Text})
		}
	}
	c.cache = c.cache || m.Cache
}

// flush adds the message with everything since the model's last message.
func (c *conversation) flush() {
	var parts []model.Part
	for _, open := range c.calls {
		r, ok := c.results[open.was]
		if !ok {
			r = model.Result{Text: noResult, Failed: true}
		}
		delete(c.results, open.was) // a second call with the same id has none
		r.CallID = open.id
		if strings.TrimSpace(r.Text) == "" {
			r.Text = "(no output)"
		}
		parts = append(parts, model.Part{Result: &r})
	}
	if parts = append(parts, c.texts...); len(parts) > 0 {
		c.out = append(c.out, model.Message{Role: model.RoleUser, Parts: parts, Cache: c.cache})
	}
	c.calls, c.results, c.texts, c.cache = nil, map[string]model.Result{}, nil, false
}

func (c *conversation) assistant(m model.Message) {
	out := model.Message{Role: model.RoleAssistant, From: m.From}
	var ids []string
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			one := *p.Call
			out.Parts = append(out.Parts, model.Part{Call: &one})
			ids = append(ids, one.ID)
		case strings.TrimSpace(p.Text) != "":
			out.Parts = append(out.Parts, model.Part{Text: p.Text})
		}
	}
	own := m.From == c.self
	if own && len(m.Raw) > 0 {
		if raw, ok := c.callsOf(m.Raw); ok && slices.Equal(raw, ids) && c.unused(ids) {
			out.Raw = m.Raw
		}
	}
	if len(out.Parts) == 0 && out.Raw == nil {
		return
	}
	if out.Raw == nil { // the results follow the calls
		slices.SortStableFunc(out.Parts, func(a, b model.Part) int { return calls(a) - calls(b) })
	}
	c.flush()
	switch n := len(c.out); {
	case n == 0:
		c.say(left)
	case c.out[n-1].Role == model.RoleAssistant:
		c.say(goOn)
	}
	for _, p := range out.Parts {
		if p.Call == nil {
			continue
		}
		was := p.Call.ID
		if out.Raw == nil && (!own || !plain().MatchString(was)) || c.used[was] {
			p.Call.ID = c.short(was)
		}
		c.used[p.Call.ID] = true
		c.calls = append(c.calls, call{was, p.Call.ID})
	}
	c.out = append(c.out, out)
}

func calls(p model.Part) int {
	if p.Call != nil {
		return 1
	}
	return 0
}

// unused reports whether the ids are unique and none is in use.
func (c *conversation) unused(ids []string) bool {
	for i, id := range ids {
		if c.used[id] || slices.Contains(ids[:i], id) {
			return false
		}
	}
	return true
}

// plain matches ids that every protocol accepts from its own model.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`) })

// short derives nine letters and digits from an id, the same in every request.
func (c *conversation) short(id string) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(id + "\x00" + strconv.Itoa(n)))
		s := new(big.Int).SetBytes(sum[:]).Text(36)[:9]
		if !c.used[s] {
			return s
		}
	}
}

// IDs assigns ids to the calls of an answer that are unique in the conversation.
type IDs struct {
	used map[string]bool
	n    int
}

// NewIDs returns the free ids of a conversation.
func NewIDs(msgs []model.Message) *IDs {
	ids := &IDs{used: map[string]bool{}}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Call != nil {
				ids.n++
				ids.used[p.Call.ID] = true
			}
		}
	}
	return ids
}

// Take returns the provider's id, or a number by arrival if that is missing or in use.
func (i *IDs) Take(id string) string {
	i.n++
	for id == "" || i.used[id] {
		id = "call_" + strconv.Itoa(i.n)
		if i.used[id] {
			i.n++
		}
	}
	i.used[id] = true
	return id
}
