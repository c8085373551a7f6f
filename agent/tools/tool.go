package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/teamctl/teamctl/agent/model"
)

// Class is the kind of a tool's effect; policy and modes refer to classes.
type Class string

// Classes of tools.
const (
	Read    Class = "read"
	Edit    Class = "edit"
	Shell   Class = "shell"
	Fetch   Class = "fetch"
	Team    Class = "team"    // an operation of the team, with gates of its own
	Session Class = "session" // on the agent's own sessions and specs
	MCP     Class = "mcp"
	Own     Class = "own" // the agent's own notes: no gate
)

// Tool is a tool that a model may call.
type Tool struct {
	model.Tool
	Class Class
	// ReadOnly tools run concurrently, and are repeated after a kill.
	ReadOnly bool
	// About returns the subject of a call, for the rules. Nil: nothing that rules match.
	About func(input json.RawMessage) Subject
	// Run carries out a call whose input matches the schema.
	Run func(ctx context.Context, c Call) (Out, error)
}

// Call is one call of a tool.
type Call struct {
	ID    string
	Input json.RawMessage
	// Progress is called with output as it arrives; may be nil.
	Progress func(text string)
}

// Out is the result of a call.
type Out struct {
	Text   string
	Failed bool
	Note   string            // one line for a screen
	Diff   string            // unified, of an edit
	Paths  []string          // files that it changed, relative to the worktree
	File   string            // absolute path of the whole text, if Text is a part of it
	Seen   map[string]string // hashes of the files whose content the session knows now
}

// Subject is what a call is about.
type Subject struct {
	Command string
	Paths   []string
	Host    string // of a fetch
}

// failed returns an Out for a mistake of the model.
func failed(format string, args ...any) Out {
	return Out{Text: fmt.Sprintf(format, args...), Failed: true}
}

// wrong is an error to be reported to the model.
type wrong struct{ text string }

func (w wrong) Error() string { return w.text }

func wrongf(format string, args ...any) error { return wrong{fmt.Sprintf(format, args...)} }

// Typed makes a tool from a function with a typed input. The schema comes from the json and
// jsonschema tags of the type, whose fields are strings, integers, booleans, lists and structs.
func Typed[In any](name, description string, class Class, readOnly bool, about func(In) Subject, run func(context.Context, Call, In) (Out, error)) Tool {
	t := Tool{Tool: model.Tool{Name: name, Description: description, Schema: schemaOf[In]().raw}, Class: class, ReadOnly: readOnly}
	if about != nil {
		t.About = func(input json.RawMessage) Subject {
			in, err := decode[In](input)
			if err != nil {
				return Subject{}
			}
			return about(in)
		}
	}
	t.Run = func(ctx context.Context, c Call) (Out, error) {
		in, err := decode[In](c.Input)
		if err != nil {
			return failed("The input of %s is not valid: %s", name, err), nil
		}
		out, err := run(ctx, c, in)
		var w wrong
		if errors.As(err, &w) {
			return failed("%s", w.text), nil
		}
		return out, err
	}
	return t
}

// decode decodes the input of a call: one JSON object without unknown fields.
func decode[In any](input json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, errors.New(plainError(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, errors.New("there is more than one value")
	}
	return in, required(in, input)
}

// plainError describes a mistake in an input, naming the field.
func plainError(err error) string {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("%s is a %s, want %s", kind.Field, kind.Value, kind.Type)
	case errors.As(err, &syntax):
		return fmt.Sprintf("not JSON at byte %d: %s", syntax.Offset, syntax)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "not JSON: it ends too soon"
	}
	return err.Error()
}

// required checks that all fields required by the schema are present.
func required[In any](_ In, input json.RawMessage) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(input, &given); err != nil {
		return errors.New("not a JSON object")
	}
	for _, name := range schemaOf[In]().required {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}
