package inbox

import (
	"bytes"
	"errors"
	"fmt"
)

// The scanner only finds the positions of the entries of an array: an entry is
// changed at its offsets and never re-encoded. encoding/json does not report
// offsets inside an object.

// span is a part of the text, [start, end).
type span struct{ start, end int }

// element is one value of the mailbox array.
type element struct {
	span
	read span // the value of its last "read" key; empty if there is none
	done bool // read is true
	obj  bool
}

// errTruncated means that the text ends inside a value: a torn write.
var errTruncated = errors.New("text ends inside the array")

// scanError is the position at which the text stops being a mailbox.
type scanError struct {
	off int
	err error
}

func (e *scanError) Error() string { return fmt.Sprintf("at byte %d: %v", e.off, e.err) }
func (e *scanError) Unwrap() error { return e.err }

const maxDepth = 500

var utf8BOM = []byte("\xef\xbb\xbf")

// scanArray finds the elements of a whole mailbox. Text consisting of white
// space is an empty array. After an error it also returns the elements before
// it.
func scanArray(data []byte) ([]element, *scanError) {
	i := 0
	if bytes.HasPrefix(data, utf8BOM) {
		i = len(utf8BOM)
	}
	i = skipSpace(data, i)
	if i == len(data) {
		return nil, nil
	}
	if data[i] != '[' {
		return nil, &scanError{i, errors.New("not an array")}
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return nil, scanEnd(data, i+1)
	}
	return scanElements(data, i)
}

// scanMore is scanArray for the text after an element.
func scanMore(data []byte) ([]element, *scanError) {
	i := skipSpace(data, 0)
	switch {
	case i == len(data):
		return nil, &scanError{i, errTruncated}
	case data[i] == ']':
		return nil, scanEnd(data, i+1)
	case data[i] == ',':
		return scanElements(data, skipSpace(data, i+1))
	}
	return nil, &scanError{i, errors.New("no comma between entries")}
}

func scanElements(data []byte, i int) ([]element, *scanError) {
	var out []element
	for {
		e, err := scanElement(data, i)
		if err != nil {
			return out, err
		}
		out = append(out, e)
		i = skipSpace(data, e.end)
		switch {
		case i == len(data):
			return out, &scanError{i, errTruncated}
		case data[i] == ']':
			return out, scanEnd(data, i+1)
		case data[i] == ',':
			i = skipSpace(data, i+1)
		default:
			return out, &scanError{i, errors.New("no comma between entries")}
		}
	}
}

func scanEnd(data []byte, i int) *scanError {
	if i = skipSpace(data, i); i != len(data) {
		return &scanError{i, errors.New("text after the array")}
	}
	return nil
}

func scanElement(data []byte, i int) (element, *scanError) {
	e := element{span: span{start: i}}
	if i < len(data) && data[i] == '{' {
		e.obj = true
		end, err := scanObject(data, i, 1, func(key, value span) {
			if string(data[key.start:key.end]) == `"read"` {
				e.read = value
				e.done = string(data[value.start:value.end]) == "true"
			}
		})
		e.end = end
		return e, err
	}
	end, err := scanValue(data, i, 1)
	e.end = end
	return e, err
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

func scanValue(data []byte, i, depth int) (int, *scanError) {
	if i >= len(data) {
		return i, &scanError{i, errTruncated}
	}
	if depth > maxDepth {
		return i, &scanError{i, errors.New("nested too deeply")}
	}
	switch c := data[i]; {
	case c == '"':
		return scanString(data, i)
	case c == '{':
		return scanObject(data, i, depth, nil)
	case c == '[':
		return scanList(data, i, depth)
	case c == 't':
		return scanWord(data, i, "true")
	case c == 'f':
		return scanWord(data, i, "false")
	case c == 'n':
		return scanWord(data, i, "null")
	case c == '-' || c >= '0' && c <= '9':
		return scanNumber(data, i)
	}
	return i, &scanError{i, fmt.Errorf("unexpected %q", data[i])}
}

func scanObject(data []byte, i, depth int, field func(key, value span)) (int, *scanError) {
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(data) {
			return i, &scanError{i, errTruncated}
		}
		if data[i] != '"' {
			return i, &scanError{i, errors.New("object key is not a string")}
		}
		key := span{start: i}
		end, err := scanString(data, i)
		if err != nil {
			return i, err
		}
		key.end = end
		i = skipSpace(data, end)
		if i < len(data) && data[i] != ':' {
			return i, &scanError{i, errors.New("no colon after an object key")}
		}
		value := span{start: skipSpace(data, i+1)}
		if value.end, err = scanValue(data, value.start, depth+1); err != nil {
			return i, err
		}
		if field != nil {
			field(key, value)
		}
		i = skipSpace(data, value.end)
		switch {
		case i >= len(data):
			return i, &scanError{i, errTruncated}
		case data[i] == '}':
			return i + 1, nil
		case data[i] != ',':
			return i, &scanError{i, errors.New("no comma between object keys")}
		}
		i = skipSpace(data, i+1)
	}
}

func scanList(data []byte, i, depth int) (int, *scanError) {
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := scanValue(data, i, depth+1)
		if err != nil {
			return i, err
		}
		i = skipSpace(data, end)
		switch {
		case i >= len(data):
			return i, &scanError{i, errTruncated}
		case data[i] == ']':
			return i + 1, nil
		case data[i] != ',':
			return i, &scanError{i, errors.New("no comma between values")}
		}
		i = skipSpace(data, i+1)
	}
}

func scanString(data []byte, i int) (int, *scanError) {
	for i++; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ':
			return i, &scanError{i, errors.New("control character in a string")}
		case c == '\\':
			i++
			if i == len(data) {
				return i, &scanError{i, errTruncated}
			}
			if data[i] == 'u' {
				for range 4 {
					i++
					if i == len(data) {
						return i, &scanError{i, errTruncated}
					}
					if !isHex(data[i]) {
						return i, &scanError{i, errors.New("bad escape in a string")}
					}
				}
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), data[i]) < 0 {
				return i, &scanError{i, errors.New("bad escape in a string")}
			}
		}
	}
	return i, &scanError{i, errTruncated}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func scanWord(data []byte, i int, word string) (int, *scanError) {
	for k := range len(word) {
		if i+k == len(data) {
			return i, &scanError{i + k, errTruncated}
		}
		if data[i+k] != word[k] {
			return i, &scanError{i + k, fmt.Errorf("unexpected %q", data[i+k])}
		}
	}
	return i + len(word), nil
}

func scanNumber(data []byte, i int) (int, *scanError) {
	digits := func() bool {
		from := i
		for i < len(data) && data[i] >= '0' && data[i] <= '9' {
			i++
		}
		return i > from
	}
	bad := func() (int, *scanError) {
		if i >= len(data) {
			return i, &scanError{i, errTruncated}
		}
		return i, &scanError{i, errors.New("bad number")}
	}
	if data[i] == '-' {
		i++
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if !digits() {
		return bad()
	}
	if i < len(data) && data[i] == '.' {
		i++
		if !digits() {
			return bad()
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return bad()
		}
	}
	return i, nil
}
