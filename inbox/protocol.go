package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Frame is a protocol message: JSON inside the text of an entry. Its sender is
// the verified sender of the message, never its own "from".
type Frame interface {
	// Kind returns the "type" of the JSON.
	Kind() team.Kind
	// Correlation returns the request id that links requests and answers, or
	// "".
	Correlation() string
}

// frameType describes how to read one kind: keys are matched exactly, others
// ignored.
type frameType struct {
	kind     team.Kind
	required []string
	optional []string
	parse    func([]byte) (Frame, error)
}

// Parse parses a protocol message. ok is false for everything else: plain text,
// other JSON, an unknown type, a missing key, a value of the wrong type.
func Parse(text string) (f Frame, ok bool) {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") || !strings.Contains(trimmed, `"type"`) {
		return nil, false
	}
	obj, err := team.ParseJSONObject([]byte(trimmed))
	if err != nil {
		return nil, false
	}
	var kind team.Kind
	if i := obj.Index("type"); i < 0 || json.Unmarshal(obj[i].Value, &kind) != nil {
		return nil, false
	}
	for _, t := range frameTypes {
		if t.kind == kind {
			return t.read(obj)
		}
	}
	return nil, false
}

func (t frameType) read(obj team.JSONObject) (Frame, bool) {
	for _, key := range t.required {
		if i := obj.Index(key); i < 0 || string(obj[i].Value) == "null" {
			return nil, false
		}
	}
	// encoding/json ignores case when matching keys, so pass it only exact
	// matches.
	known := slices.DeleteFunc(slices.Clone(obj), func(f team.JSONField) bool {
		return !slices.Contains(t.required, f.Key) && !slices.Contains(t.optional, f.Key)
	})
	f, err := t.parse(known.AppendJSON(nil))
	return f, err == nil
}

func parseAs[T Frame](data []byte) (Frame, error) {
	var f T
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	return f, nil
}

// Encode returns the text of a protocol message, with keys in the order of the
// clients.
func Encode(f Frame) (string, error) {
	body, err := marshalPlain(f)
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "encode a %s: %w", f.Kind(), err)
	}
	return `{"type":"` + string(f.Kind()) + `",` + string(body[1:]), nil
}

// NewRequestID returns <kind>-<milliseconds>@<target>, with a later millisecond
// while taken (nil for no check) returns true. Documented kinds: "shutdown",
// "plan_approval".
func NewRequestID(kind, target string, now time.Time, taken func(string) bool) string {
	for ms := now.UnixMilli(); ; ms++ {
		id := kind + "-" + strconv.FormatInt(ms, 10) + "@" + target
		if taken == nil || !taken(id) {
			return id
		}
	}
}

// FrameEntry returns a mailbox entry for a protocol message. The caller sets
// its id.
func FrameEntry(from, color string, f Frame, now time.Time) (Entry, error) {
	text, err := Encode(f)
	if err != nil {
		return Entry{}, fmt.Errorf("message from %s: %w", from, err)
	}
	return Entry{From: from, Color: color, Text: text, Timestamp: Timestamp(now)}, nil
}
