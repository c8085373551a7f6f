package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// elements lists the types whose keys docs/cli-json.md describes.
var elements = []any{
	ledger.Task{}, ledger.Result{}, ledger.Counts{}, ledger.Member{}, team.MemberSpec{}, ledger.Event{}, ledger.Message{}, ledger.Delivery{},
	ledger.Approval{}, ledger.Run{}, ledger.Scratchpad{}, ledger.Merge{}, ledger.FileLease{},
	tool.TeamInfo{}, tool.Spawned{}, tool.TeamDeleteOut{}, tool.Sent{}, tool.InboxEntry{}, tool.Check{}, tool.HookInfo{}, team.SavedWork{},
}

const cliJSONHead = `# The output of commands, for programs

<!-- Generated from the shapes of commands and cmd/teamctl/testdata/json by go generate ./cmd/teamctl; do not edit. -->

This is a contract: keys that stand here keep their names, types and meanings; new ones may come, so ignore what you do not know. A change
that breaks it stands in the changelog.

- ` + "`-o json`" + ` (or ` + "`--json`" + `) writes one document to standard output; ` + "`-o jsonl`" + ` each element of its list on a line of its own, or the document on
  one line where it has no list; ` + "`-o name`" + ` each element's name or id. A *stream* writes one element a line in each of these forms.
- ` + "`--watch`" + ` writes the document again whenever it has changed; with ` + "`jsonl`" + ` and ` + "`name`" + ` only the lines that are new.
- Times are Unix milliseconds where they are numbers, RFC 3339 where they are texts; durations are nanoseconds; sizes are bytes. A key that is marked
  optional is left out when it is empty.
- Standard error has words for people, and nothing that a program needs.
- An error is a document as well, on standard output: ` + "`{\"error\": {\"code\", \"message\", \"reason\", \"hint\"}}`" + `; reason and hint are optional. The exit
  status follows the code: internal 1, invalid 2, not_found 3, conflict 4, denied 5, limit 6, unavailable 7, timeout 8. Programs read code and
  reason; messages change. With ` + "`-o name`" + ` errors are words on standard error.
- What was so already is not an error: the exit status is 0, and the status or outcome in the result begins with ` + "`already_`" + `.

The examples are what tests compare with, on every change. Ids, times, paths and numbers of processes in them are made up.
`

// cliJSON returns docs/cli-json.md.
func cliJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(cliJSONHead)
	for _, key := range slices.Sorted(maps.Keys(shapes)) {
		s := shapes[key]
		data, err := os.ReadFile(goldenPath(key))
		if errors.Is(err, fs.ErrNotExist) {
			data = nil
		} else if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n## teamctl %s\n\n", key)
		var says []string
		if s.stream {
			says = append(says, "A stream: one element a line.")
		}
		if s.list != "" {
			says = append(says, fmt.Sprintf("The list is `%s`.", s.list))
		}
		switch s.name {
		case "":
		case itself:
			says = append(says, "`-o name` writes its elements, which are texts.")
		default:
			says = append(says, fmt.Sprintf("`-o name` writes `%s`.", s.name))
		}
		if s.watch {
			says = append(says, "`--watch` follows it.")
		}
		if !s.reads {
			says = append(says, "It tells what the command has done.")
		}
		if s.note != "" {
			says = append(says, s.note)
		}
		if len(says) > 0 {
			b.WriteString(strings.Join(says, " ") + "\n")
		}
		if data != nil {
			fmt.Fprintf(&b, "\n```json\n%s```\n", data)
		}
	}
	writeWords(&b, "Events", "The key `what` of an event is one of these names; more may come.", team.Events())
	writeWords(&b, "Reasons", "The `reason` of an error is one of these names; more may come.", team.Reasons())
	b.WriteString("\n# Types\n")
	for _, e := range elements {
		t := reflect.TypeOf(e)
		fmt.Fprintf(&b, "\n## %s\n\n| key | type | |\n|---|---|---|\n", t.Name())
		keys(&b, t)
	}
	return b.Bytes(), nil
}

// writeWords writes a chapter with a table of names.
func writeWords(b *bytes.Buffer, title, about string, words []team.Word) {
	fmt.Fprintf(b, "\n# %s\n\n%s\n\n| name | meaning |\n|---|---|\n", title, about)
	for _, w := range words {
		fmt.Fprintf(b, "| `%s` | %s |\n", w.Name, w.Means)
	}
}

// keys writes a table row for each JSON key of a struct.
func keys(b *bytes.Buffer, t reflect.Type) {
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			keys(b, f.Type)
			continue
		case name == "":
			name = f.Name
		}
		note := ""
		if strings.Contains(opts, "omit") {
			note = "optional"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, jsonType(f.Type), note)
	}
}

func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return "JSON"
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return "text"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "list of " + jsonType(t.Elem())
	case reflect.Map:
		return "object of " + jsonType(t.Elem())
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Struct:
		if slices.ContainsFunc(elements, func(e any) bool { return reflect.TypeOf(e) == t }) {
			return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
		}
		return "object"
	case reflect.Interface:
		return "JSON"
	default:
		return "number"
	}
}
