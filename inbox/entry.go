package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/teamctl/teamctl/team"
)

// Entry is one message in a mailbox.
type Entry struct {
	From      string // the sender's name, unverified: any program that can write the file can write any name
	Text      string // plain text, or a protocol message (see Parse)
	Summary   string // five to ten words for lists; may be empty
	Timestamp string // ISO 8601 with milliseconds, UTC
	Color     string // the sender's colour; may be empty
	Read      bool
	// Taken means that this package has set the read mark in the file, and that
	// no program has formatted the file since; see MarkTaken.
	Taken bool
	ID    string // msg_id; empty for older clients
	Type  string // for example "message"; may be empty

	// Extra holds all other keys, in their order.
	Extra team.JSONObject

	// Index is the entry's position in the array when it was read, starting at
	// 0.
	Index int
}

// mayBeKnownKey marks a restored entry; see MayBeKnown.
const mayBeKnownKey = "mayBeKnown"

// rawTextKey holds the base64 of a text that is not valid UTF-8, which JSON
// cannot represent.
const rawTextKey = "text_b64"

// maxText is the maximum size of a text in bytes. A message has at most
// team.MaxMessageBytes; escapes make it longer inside a protocol message.
const maxText = 1 << 20

// Key identifies the entry: its msg_id, or for an entry without one a digest of
// sender, time and text.
func (e Entry) Key() string {
	if e.ID != "" {
		return e.ID
	}
	h := sha256.New()
	for _, s := range []string{e.From, e.Timestamp, e.Text} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// RawText returns the text as the sender wrote it, even if it is not valid
// UTF-8 (in which case Text contains U+FFFD).
func (e Entry) RawText() []byte {
	if i := e.Extra.Index(rawTextKey); i >= 0 {
		var s string
		if err := json.Unmarshal(e.Extra[i].Value, &s); err == nil {
			if raw, err := base64.StdEncoding.DecodeString(s); err == nil && strings.ToValidUTF8(string(raw), "\ufffd") == e.Text {
				return raw
			}
		}
	}
	return []byte(e.Text)
}

// SetMayBeKnown marks an entry as restored to a mailbox that had it before,
// without evidence that its reader received it.
func (e *Entry) SetMayBeKnown() { e.Extra.Set(mayBeKnownKey, json.RawMessage("true")) }

// MayBeKnown reports whether SetMayBeKnown was called for the entry.
func (e Entry) MayBeKnown() bool {
	i := e.Extra.Index(mayBeKnownKey)
	return i >= 0 && string(e.Extra[i].Value) == "true"
}

// Frame returns the protocol message in the text, if it is one.
func (e Entry) Frame() (Frame, bool) { return Parse(e.Text) }

// Timestamp formats a time for entries and protocol messages.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// check rejects entries that foreign readers would drop, and sets a missing
// time.
func (e *Entry) check() error {
	if e.From == "" {
		return team.Errorf(team.CodeInvalid, "a message needs a sender")
	}
	if len(e.Text) > maxText {
		return team.Errorf(team.CodeLimit, "the text has %d bytes, the limit is %d", len(e.Text), maxText).
			WithReason(team.ReasonMessageTooLarge).WithHint("put it into a file and send the path")
	}
	if e.Timestamp == "" {
		e.Timestamp = Timestamp(time.Now())
	}
	return nil
}

// encode returns the text of the entry in the array, without leading white
// space.
func (e Entry) encode() ([]byte, error) {
	var o team.JSONObject
	str := func(key, s string) {
		o = append(o, team.JSONField{Key: key, Value: team.AppendJSONString(nil, s)})
	}
	opt := func(key, s string) {
		if s != "" {
			str(key, s)
		}
	}
	text := strings.ToValidUTF8(e.Text, "\ufffd")
	str("from", e.From)
	str("text", text)
	opt("summary", e.Summary)
	str("timestamp", e.Timestamp)
	opt("color", e.Color)
	if text != e.Text {
		str(rawTextKey, base64.StdEncoding.EncodeToString([]byte(e.Text)))
	}
	for _, f := range e.Extra {
		if !ownKey(f.Key) && o.Index(f.Key) < 0 {
			o = append(o, f)
		}
	}
	opt("msg_id", e.ID)
	opt("type", e.Type)
	if e.Read {
		o.Set("read", json.RawMessage("true"))
	} else {
		o.Set("read", json.RawMessage("false"))
	}
	raw, err := indent(o.AppendJSON(nil))
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "encode a mailbox entry: %w", err)
	}
	return raw, nil
}

// indent formats a JSON value for the array.
func indent(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(raw) + 128)
	if err := json.Indent(&out, raw, "  ", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func ownKey(key string) bool {
	switch key {
	case "from", "text", "summary", "timestamp", "color", "read", "msg_id", "type":
		return true
	}
	return false
}

// decode decodes an element of data. A value of the wrong type counts as
// absent.
func decode(data []byte, e element, index int) Entry {
	out := Entry{Index: index, Read: e.done, Taken: e.done && e.read.end > 0 && data[e.read.end] == takenMark[len(takenMark)-1]}
	_, _ = scanObject(data, e.start, 1, func(key, value span) {
		raw := data[value.start:value.end]
		k, _ := unquote(data[key.start:key.end])
		switch k {
		case "from":
			out.From, _ = unquote(raw)
		case "text":
			out.Text, _ = unquote(raw)
		case "summary":
			out.Summary, _ = unquote(raw)
		case "timestamp":
			out.Timestamp, _ = unquote(raw)
		case "color":
			out.Color, _ = unquote(raw)
		case "msg_id":
			out.ID, _ = unquote(raw)
		case "type":
			out.Type, _ = unquote(raw)
		case "read":
		default:
			out.Extra.Set(k, bytes.Clone(raw))
		}
	}) // scanned before, so it cannot fail
	return out
}

func unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if body := raw[1 : len(raw)-1]; bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
