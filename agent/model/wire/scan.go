package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxDepth is the nesting that encoding/json accepts.
const maxDepth = 10000

// ordinary marks the bytes that a JSON string may contain and that neither end it nor begin an escape.
var ordinary = func() (t [256]bool) {
	for i := range t {
		t[i] = i >= ' ' && i != '"' && i != '\\'
	}
	return t
}()

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\r' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// scan returns the length of the JSON value at the start of b; 0 if there is no valid one. It
// accepts what encoding/json does.
func scan(b []byte, depth int) int {
	if len(b) == 0 {
		return 0
	}
	switch c := b[0]; {
	case c == '"':
		return scanString(b)
	case c == '{' || c == '[':
		return scanNested(b, depth)
	case c == '-' || c >= '0' && c <= '9':
		return scanNumber(b)
	}
	for _, word := range []string{"null", "true", "false"} {
		if len(b) >= len(word) && string(b[:len(word)]) == word {
			return len(word)
		}
	}
	return 0
}

func scanString(b []byte) int {
	for i := 1; i < len(b); i++ {
		if ordinary[b[i]] {
			continue
		}
		if b[i] == '"' {
			return i + 1
		}
		if i++; b[i-1] != '\\' || i == len(b) {
			return 0
		}
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			if i+4 >= len(b) || len(bytes.TrimLeft(b[i+1:i+5], "0123456789abcdefABCDEF")) > 0 {
				return 0
			}
			i += 4
		default:
			return 0
		}
	}
	return 0
}

func scanNumber(b []byte) int {
	digits := func(i int) int {
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i
	}
	first := 0
	if b[0] == '-' {
		first = 1
	}
	i := digits(first)
	if i == first || b[first] == '0' && i > first+1 {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = digits(from); i == from {
			return 0
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = digits(from); i == from {
			return 0
		}
	}
	return i
}

// scanNested returns the length of an object or a list.
func scanNested(b []byte, depth int) int {
	rest, ok := walk(b, depth, func(_, _ []byte) {})
	if !ok {
		return 0
	}
	return len(b) - len(rest)
}

// walk calls do for each field of the object, or each element of the list, at the start of b; name
// is a JSON string, nil in a list. It returns what follows; false if the value is not valid, for
// which it may have called do.
func walk(b []byte, depth int, do func(name, value []byte)) (rest []byte, ok bool) {
	end := b[0] + 2 // the closing bracket
	if depth++; depth > maxDepth {
		return nil, false
	}
	rest = skipSpace(b[1:])
	if len(rest) > 0 && rest[0] == end {
		return rest[1:], true
	}
	for {
		var name []byte
		if end == '}' {
			if len(rest) == 0 || rest[0] != '"' {
				return nil, false
			}
			n := scanString(rest)
			name = rest[:n]
			if rest = skipSpace(rest[n:]); n == 0 || len(rest) == 0 || rest[0] != ':' {
				return nil, false
			}
			rest = skipSpace(rest[1:])
		}
		n := scan(rest, depth)
		if n == 0 {
			return nil, false
		}
		do(name, rest[:n:n])
		if rest = skipSpace(rest[n:]); len(rest) == 0 {
			return nil, false
		}
		if rest[0] == end {
			return rest[1:], true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = skipSpace(rest[1:])
	}
}

// Each calls do for each element of a JSON list, which is valid as long as raw. A list that is null
// or missing has none. It returns false for any other value.
func Each(raw json.RawMessage, do func(json.RawMessage)) bool {
	b := skipSpace(raw)
	if IsNull(raw) {
		return true
	}
	if len(b) == 0 || b[0] != '[' {
		return false
	}
	rest, ok := walk(b, 0, func(_, value []byte) { do(value) })
	return ok && len(skipSpace(rest)) == 0
}

// Text decodes a JSON string; it returns "" for any other value. raw is valid JSON.
func Text(raw json.RawMessage) string {
	if !IsString(raw) {
		return ""
	}
	in := raw[1 : len(raw)-1]
	if !utf8.Valid(in) {
		return decoded(raw)
	}
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return string(in)
	}
	var b strings.Builder
	b.Grow(len(in))
	for ; i >= 0; i = bytes.IndexByte(in, '\\') {
		if i+1 == len(in) {
			return decoded(raw)
		}
		c := in[i+1]
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		default:
			return decoded(raw)
		}
		b.Write(in[:i])
		b.WriteByte(c)
		in = in[i+2:]
	}
	b.Write(in)
	return b.String()
}

// decoded is what encoding/json decodes.
func decoded(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
