package permit

import (
	"encoding/json"
	"strings"
)

// Of returns the request that a tool's input means. Parts that it does not understand are unknown,
// and no rule that requires them allows the request.
func Of(tool string, input json.RawMessage) Request {
	r := Request{Tool: tool}
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return r
	}
	if classOf(tool) == edit && strings.EqualFold(tool, "apply_patch") {
		r.Paths = patched(text(in["command"]) + text(in["input"]) + text(in["patch"]))
		return r
	}
	r.Command = text(in["command"])
	for _, key := range []string{"file_path", "notebook_path", "filePath", "filepath", "path"} {
		if p := text(in[key]); p != "" {
			r.Paths = append(r.Paths, p)
		}
	}
	return r
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // another type is not understood
	return s
}

// patched are the files that a patch in Codex's form names.
func patched(patch string) (out []string) {
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if p, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				out = append(out, strings.TrimSpace(p))
			}
		}
	}
	return out
}
