package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func same(a, b field) bool { return a.name == b.name && bytes.Equal(a.value, b.value) }

// FuzzObject compares ParseObject with encoding/json: the same inputs are objects, with the same names
// and, but for space around them, the same values.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"]}"},2],"d":{"e":{}} } `, `{"a\u0062":"x\\","a":"\"","a":null}`, "{\"n\":-1.5e3,\"t\":true\n}",
		`[1]`, `"s"`, `1`, ``, ` `, `{`, `{"a"}`, `{"a":1,}`, `{"a":1} x`, "{\"\xff\":\"\xff\"}", `{"a":"é\ud83d"}`, `{"":""}`, `{"a":[],"b":{},"c":[[]]}`, `{"a\n":1}`,
	} {
		f.Add([]byte(seed))
	}
	for _, value := range []string{
		`-0`, `01`, `-`, `1.`, `.5`, `1.5E+3`, `1e`, `1e-`, `+1`, `0x1`, `nul`, `nulls`, `True`, `false`, `NaN`, `"\u12"`, `"\u12g4"`, `"\uD83D\uDE00\n\/"`, `"\x"`, `"\"`, "\"\x1f\"", "\"\x7f\"", `"`, `[,]`, `[1,]`, `[1 2]`, `{"a":1 "b":2}`, `{1:2}`, `{"a" 1}`,
		strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1), strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	} {
		f.Add([]byte(`{"a":` + value + `}`))
		f.Add([]byte("[ " + value + " ,\n1]"))
	}
	var many []string
	for i := range 2 * manyFields {
		many = append(many, fmt.Sprintf(`"f%d":%d`, i%(manyFields+3), i))
	}
	f.Add([]byte("{" + strings.Join(many, ",") + "}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		was := bytes.Clone(raw)
		var elements, each []json.RawMessage
		isList := json.Unmarshal(raw, &elements) == nil
		if trimmed := bytes.Trim(raw, " \t\r\n"); len(trimmed) > 0 && Each(trimmed, func(one json.RawMessage) { each = append(each, one) }) != isList || isList && !slices.EqualFunc(each, elements, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%q has the elements %q, want %q, a list: %t", raw, each, elements, isList)
		}
		var want map[string]json.RawMessage
		err := json.Unmarshal(raw, &want)
		isObject := err == nil && want != nil
		o, err := ParseObject(raw)
		if (err == nil) != isObject {
			t.Fatalf("%q: an object: %t, %v", raw, isObject, err)
		}
		if err != nil {
			return
		}
		if names := o.Names(); len(names) != len(want) || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Fatalf("%q: %q", raw, names)
		}
		for name, value := range want {
			if got := o.Get(name); !bytes.Equal(got, value) {
				t.Errorf("%q: %q is %q, want %q", raw, name, got, value)
			}
			var text string
			if json.Unmarshal(value, &text) == nil && o.Text(name) != text {
				t.Errorf("%q: the text of %q is %q, want %q", raw, name, o.Text(name), text)
			}
		}
		if again, err := ParseObject(o.Bytes()); err != nil || !slices.EqualFunc(again.fields, o.fields, same) {
			t.Errorf("%q is encoded as %q, %v", raw, o.Bytes(), err)
		}
		again := Object{}
		for _, before := range []string{`{"a\\n":1,"b":2}`, `{"b":1,"a":2}`, string(raw)} { // whose names it reuses
			if again.Read([]byte(before)) != nil || again.Read(raw) != nil || !slices.EqualFunc(again.fields, o.fields, same) {
				t.Errorf("%q is read as %q after %q", raw, again.Bytes(), before)
			}
		}
		if !bytes.Equal(raw, was) {
			t.Errorf("%q was changed to %q", was, raw)
		}
	})
}
