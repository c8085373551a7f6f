package script

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Step is one answer of the model.
type Step struct {
	Wait   time.Duration   // before it
	Tool   string          // call this tool
	Input  json.RawMessage // of the call
	Shell  string          // call the tool that runs this command
	Say    string          // else say this
	Status int             // or answer with this HTTP status; Say is the message
}

// Part is one stretch of a conversation: everything that came in between two
// answers of the model, or one answer.
type Part struct {
	Model bool   // an answer of the model
	Text  string // what came in, one text per line group
	Tool  bool   // a tool's result is among it
}

// broken marks an interrupted turn: what was left of its script is not wanted any
// more. The words are those of the CLIs.
var broken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i:\[request) interrupted by user|<turn_aborted>|(?i:user) interrupted the previous turn`)
})

// Next returns the step that the conversation has come to; ok is false when every step
// has been carried out. The parts are those that Merge returns.
func Next(parts []Part) (next Step, ok bool) {
	var queue, given []Step // given: what stands in the input of the last call
	for _, p := range parts {
		if p.Model {
			given = nil
			if len(queue) > 0 {
				given = Parse(string(queue[0].Input))
				queue = queue[1:]
			}
			continue
		}
		text := p.Text
		var all [][]int
		if strings.Contains(text, "nterrupted") || strings.Contains(text, "turn_aborted") { // the search is dear
			all = broken().FindAllStringIndex(text, -1)
		}
		if len(all) > 0 { // broken off before an answer came, it is one stretch with the next turn
			text = text[all[len(all)-1][1]:]
		}
		found := Parse(text)
		if p.Tool {
			found = without(found, given)
		}
		switch {
		case len(found) > 0 && !p.Tool, len(all) > 0:
			queue = found // a new turn, or one that was broken off
		default:
			queue = append(found, queue...)
		}
	}
	if len(queue) == 0 {
		return Step{}, false
	}
	return queue[0], true
}

// without takes the given steps out of found: a tool that sends a message tells what it
// has sent, and the sender is not the one who is to do it.
func without(found, given []Step) []Step {
	return slices.DeleteFunc(found, func(f Step) bool {
		return slices.ContainsFunc(given, func(g Step) bool {
			return same(f, g)
		})
	})
}

func same(a, b Step) bool {
	return a.Wait == b.Wait && a.Tool == b.Tool && string(a.Input) == string(b.Input) && a.Shell == b.Shell && a.Say == b.Say && a.Status == b.Status
}

// Merge joins neighbours of one side into one part.
func Merge(parts []Part) []Part {
	var out []Part
	for _, p := range parts {
		if n := len(out); n > 0 && out[n-1].Model == p.Model {
			out[n-1].Text += "\n" + p.Text
			out[n-1].Tool = out[n-1].Tool || p.Tool
			continue
		}
		out = append(out, p)
	}
	return out
}

var directive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s>*│|]*@@(call|shell|say|sleep|fail)\s*(.*)$`)
})

// requestID is that of a request to shut down, which the call that answers it may name
// as $REQUEST: who wrote the script does not know it.
var requestID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`shutdown-\d+@[A-Za-z0-9_-]+`) })

// Parse finds the steps of a text, in order. A text that is JSON, as tool results
// are, is searched in its strings.
func Parse(text string) []Step {
	if !strings.Contains(text, "@@") {
		return nil // a whole conversation is parsed for every answer
	}
	var steps []Step
	var wait time.Duration
	for _, line := range lines(text) {
		if !strings.Contains(line, "@@") {
			continue
		}
		m := directive().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		s := Step{Wait: wait}
		rest := strings.TrimSpace(m[2])
		switch m[1] {
		case "sleep":
			d, err := time.ParseDuration(rest)
			if err == nil {
				wait += d
			}
			continue
		case "say":
			s.Say = rest
		case "shell":
			s.Shell = html.UnescapeString(rest)
		case "fail":
			code, words, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(code)
			if err != nil || n < 400 || n > 599 {
				n = 500
			}
			s.Status, s.Say = n, html.UnescapeString(words)
		case "call":
			name, input, _ := strings.Cut(rest, " ")
			if ids := requestID().FindAllString(text, -1); len(ids) > 0 {
				input = strings.ReplaceAll(input, "$REQUEST", ids[len(ids)-1])
			}
			s.Tool, s.Input = name, object(input)
		}
		wait = 0
		steps = append(steps, s)
	}
	return steps
}

// object is the JSON object that a call gives as its input; {} when it gives none.
// A message that was escaped on its way is read back.
func object(s string) json.RawMessage {
	for _, try := range []string{s, html.UnescapeString(s)} {
		var o map[string]json.RawMessage
		d := json.NewDecoder(strings.NewReader(try))
		if d.Decode(&o) == nil && o != nil {
			b, err := json.Marshal(o)
			if err == nil {
				return b
			}
		}
	}
	return json.RawMessage(`{}`)
}

// lines are the lines of a text, of the strings in it where a line of it, or all
// of it, is JSON.
func lines(text string) []string {
	if !strings.Contains(text, "@@") {
		return nil
	}
	if got, ok := inJSON(text); ok {
		return got
	}
	var out []string
	for l := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		if !strings.Contains(l, "@@") {
			continue
		}
		if got, ok := inJSON(l); ok {
			out = append(out, got...)
			continue
		}
		out = append(out, l)
	}
	return out
}

// inJSON gives the lines of every string in a JSON object or array, each string
// once: structured results repeat their text.
func inJSON(text string) ([]string, bool) {
	t := strings.TrimSpace(text)
	if t == "" || t[0] != '{' && t[0] != '[' {
		return nil, false
	}
	var v any
	if json.Unmarshal([]byte(t), &v) != nil {
		return nil, false
	}
	var out []string
	seen := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if !seen[v] {
				seen[v] = true
				out = append(out, lines(v)...)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(v[k])
			}
		}
	}
	walk(v)
	return out, true
}
