package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// FuzzObject compares ParseObject with encoding/json: the same inputs are objects, with the same names
// and, but for space around them, the same values.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"]}"},2],"d":{"e":{}} } `, `{"a\u0062":"x\\","a":"\"","a":null}`, "{\"n\":-1.5e3,\"t\":true\n}",
		`[1]`, `"s"`, `1`, ``, ` `, `{`, `{"a"}`, `{"a":1,}`, `{"a":1} x`, "{\"\xff\":\"\xff\"}", `{"a":"é\ud83d"}`, `{"":""}`, `{"a":[],"b":{},"c":[[]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		was := bytes.Clone(raw)
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
		if again, err := ParseObject(o.Bytes()); err != nil || !slices.Equal(again.names, o.names) || !maps.EqualFunc(again.values, o.values, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%q is encoded as %q, %v", raw, o.Bytes(), err)
		}
		if !bytes.Equal(raw, was) {
			t.Errorf("%q was changed to %q", was, raw)
		}
	})
}
