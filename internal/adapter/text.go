package adapter

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// jsonText encodes a value for other programs: indented, without HTML escapes. The values are made
// here and can always be encoded.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.String()
}

// tomlString encodes a TOML basic string, which has the escapes of JSON.
func tomlString(s string) string {
	return strings.ReplaceAll(strings.TrimSuffix(oneLine(s), "\n"), "\x7f", `\u007f`)
}

// oneLine encodes a value as JSON in one line.
func oneLine(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func tomlList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = tomlString(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}

// tomlTable encodes a sorted inline table of strings.
func tomlTable(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, tomlString(k)+"="+tomlString(m[k]))
	}
	return "{" + strings.Join(out, ",") + "}"
}
