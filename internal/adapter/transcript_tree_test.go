package adapter

import (
	"encoding/json"
	"testing"
)

// line is a line of Claude Code's transcript.
type line struct {
	Type       string         `json:"type"`
	Version    string         `json:"version,omitempty"`
	UUID       string         `json:"uuid"`
	Parent     string         `json:"parentUuid"`
	Message    map[string]any `json:"message,omitempty"`
	Attachment map[string]any `json:"attachment,omitempty"`
}

// tree is a transcript, of lines KIND, ID, PARENT and, of a note, its text and, of an answer, its id
// in the protocol or, if it is the program's own, its version.
func tree(t *testing.T, lines ...[4]string) Transcript {
	t.Helper()
	var data []byte
	for _, l := range lines {
		out := line{Type: l[0], UUID: l[1], Parent: l[2]}
		switch l[0] {
		case "note":
			out.Type, out.Attachment = "attachment", map[string]any{"type": "hook_additional_context", "content": []string{l[3]}}
		case "end":
			out.Type, out.Attachment = "attachment", map[string]any{"type": "hook_additional_context", "content": []string{l[3]}, "hookEvent": "Stop"}
		case "reminder":
			out.Type, out.Attachment = "attachment", map[string]any{"type": "task_reminder"}
		case "own":
			out.Type, out.Version, out.Message = "assistant", l[3], map[string]any{"id": l[1], "model": syntheticModel, "content": "No response requested."}
		case "assistant":
			out.Message = map[string]any{"id": l[3], "model": "m", "content": "text"}
		default:
			out.Message = map[string]any{"content": "text"}
		}
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		data = append(append(data, b...), '\n')
	}
	return ReadTranscript(Claude, data)
}

// What a hook has added counts once the model has answered it. In the shapes that Claude Code
// writes: a turn, calls side by side, and a process that was killed and resumed.
func TestAddedAndAnswered(t *testing.T) {
	t.Parallel()
	turn := [][4]string{{"user", "u", ""}, {"reminder", "r", "u"}, {"note", "n", "r", "the note"}}
	killed := append(turn[:3:3], [4]string{"own", "o", "u"}, [4]string{"user", "v", "o"})
	result := [][4]string{
		{"user", "u", ""}, {"assistant", "a", "u", "m1"}, {"assistant", "b", "a", "m1"},
		{"user", "x", "a"}, {"note", "n", "x", "the note"}, {"user", "y", "b"}, {"note", "z", "y", "another"},
	}
	for name, c := range map[string]struct {
		lines       [][4]string
		holds, note bool
	}{
		"not answered":                    {turn, false, true},
		"answered":                        {append(turn[:3:3], [4]string{"assistant", "a", "n", "m1"}), true, false},
		"answered later":                  {append(turn[:3:3], [4]string{"user", "v", "n"}, [4]string{"assistant", "a", "v", "m1"}), true, false},
		"killed, and resumed":             {killed, false, true},
		"killed, resumed, and answered":   {append(killed[:5:5], [4]string{"assistant", "a", "v", "m1"}), false, false},
		"added to a call beside another":  {append(result[:7:7], [4]string{"assistant", "c", "z", "m2"}), true, false},
		"that call is answered by nobody": {result, false, true},
		"resumed without the results":     {append(result[:7:7], [4]string{"own", "o", "u"}, [4]string{"user", "v", "o"}, [4]string{"assistant", "c", "v", "m2"}), false, false},
		"resumed with one result":         {append(result[:7:7], [4]string{"own", "o", "y"}, [4]string{"user", "v", "o"}, [4]string{"assistant", "c", "v", "m2"}), false, false},
		"by a version that keeps both":    {append(result[:7:7], [4]string{"own", "o", "y", "2.1.329"}, [4]string{"user", "v", "o"}, [4]string{"assistant", "c", "v", "m2"}), true, false},
	} {
		got := tree(t, c.lines...)
		if got.Holds("the note") != c.holds || got.Noted("the note") != c.note {
			t.Errorf("%s: holds %v, want %v; noted %v, want %v", name, got.Holds("the note"), c.holds, got.Noted("the note"), c.note)
		}
	}
}

// What a hook has added stays in a conversation that Claude Code 2.1.329 resumes, until an answer
// that does not follow it shows that it does not. In the shapes that it writes: what the hook at the end
// of a turn has added needs no answer of its own.
func TestKept(t *testing.T) {
	t.Parallel()
	prompt, own := [][4]string{{"user", "u", ""}, {"note", "n", "u", "the note"}}, [4]string{"own", "o", "n", "2.1.329"}
	killed := [][4]string{{"user", "u", ""}, {"assistant", "a", "u", "m1"}, {"end", "n", "a", "the note"}, {"reminder", "s", "n"}}
	for name, c := range map[string]struct {
		lines             [][4]string
		kept, noted, held bool
	}{
		"added to a prompt":           {prompt, true, true, false},
		"and answered by the program": {append(prompt[:2:2], own), true, true, false},
		"and by the model":            {append(prompt[:2:2], own, [4]string{"user", "v", "o"}, [4]string{"assistant", "b", "v", "m1"}), false, false, true},
		"and resumed without it":      {append(prompt[:2:2], [4]string{"own", "o", "u", "2.1.329"}, [4]string{"user", "v", "o"}, [4]string{"assistant", "b", "v", "m1"}), false, false, false},
		"killed":                      {killed, true, true, false},
		"resumed":                     {append(killed[:4:4], [4]string{"user", "v", "s"}), true, true, false},
		"resumed and answered":        {append(killed[:4:4], [4]string{"user", "v", "s"}, [4]string{"assistant", "b", "v", "m2"}), false, false, true},
		"resumed without it":          {append(killed[:4:4], [4]string{"user", "v", "a"}, [4]string{"assistant", "b", "v", "m2"}), false, false, false},
		"answered by the program":     {append(killed[:4:4], [4]string{"own", "o", "s"}), true, true, false},
		"answered by it, then model":  {append(killed[:4:4], [4]string{"own", "o", "s"}, [4]string{"user", "v", "o"}, [4]string{"assistant", "b", "v", "m2"}), false, false, true},
	} {
		got := tree(t, c.lines...)
		kept, noted, held := got.Kept(claudeKeeps, "the note"), got.Noted("the note"), got.Holds("the note")
		if kept != c.kept || noted != c.noted || held != c.held || got.Kept(claudeRecords, "the note") {
			t.Errorf("%s: kept %v, noted %v, holds %v", name, kept, noted, held)
		}
	}
}
