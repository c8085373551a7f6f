// Package op is the table of operations as other programs call them: each one
// once, with the names and parameters of the documents, the schemas of its input
// and output from the Go types, what it is for in the words of doc/NAME.md, and
// who may call it.
//
// [Session.Call] is the one way in. The MCP server and teamctl call go through it
// with JSON; a Go program does the same, or calls package tool with its types. So
// the doors cannot differ in what they refuse or in what they say about it.
//
// # Strict inputs
//
// A parameter that an operation does not have is refused by name, one that is
// missing too; a parameter that is null counts as not given. Nothing has been
// done when an input is refused.
//
// # What is on offer
//
// Who calls, decides: the role by the table of package tool, the permission mode,
// and what the team has set. [Session.Offered] is the same decision for a list of
// tools; the operations themselves decide again on every call.
package op

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Op is one operation.
type Op struct {
	Name string
	Verb string // the same at a shell: "task add"
	// Gates are the rows of the table of roles that lead in: one of them is enough
	// to be offered the operation. None: it is everybody's.
	Gates       []tool.Operation
	ReadOnly    bool // changes nothing that others see
	Destructive bool // takes away what may be missed
	Idempotent  bool // once more changes nothing more
	Outside     bool // works without a team
	Long        bool // may take as long as others take: reports progress, can be cancelled
	// Also are further names that parameters are taken by: those of the documents, where
	// the same word means something else here.
	Also map[string]string

	in, out reflect.Type
	decode  func(raw json.RawMessage) (any, error)
	run     func(ctx context.Context, s *Session, in any) (any, error)
}

// with completes an operation by what it runs.
func with[In, Out any](o Op, run func(context.Context, *Session, In) (Out, error)) Op {
	o.in, o.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.decode = func(raw json.RawMessage) (any, error) {
		var in In
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&in); err != nil {
			return nil, team.Errorf(team.CodeInvalid, "%s: %w", o.Name, err).WithReason(team.ReasonInput)
		}
		return in, nil
	}
	o.run = func(ctx context.Context, s *Session, in any) (any, error) {
		return run(ctx, s, in.(In)) //nolint:forcetypeassert // of decode
	}
	return o
}

// Decode checks a JSON input and returns it as the type of the operation.
func (o Op) Decode(input json.RawMessage) (any, error) {
	raw, err := o.checkInput(input)
	if err != nil {
		return nil, err
	}
	return o.decode(raw)
}

// TeamRef is the team that an operation is about; every input but those of
// TeamCreate and TeamDelete has it.
type TeamRef struct {
	TeamName string `json:"team_name,omitempty" jsonschema:"Name of the team; the current one if left out."`
}

//go:embed doc/*.md
var docs embed.FS

// Doc is the description for a model, in Markdown: what it does, when to use it,
// an example, what it refuses.
func (o Op) Doc() string {
	b, err := docs.ReadFile("doc/" + o.Name + ".md")
	if err != nil {
		return "" // TestDocs shows it
	}
	return strings.TrimSpace(string(b))
}

// Title is the name in words.
func (o Op) Title() string {
	var b strings.Builder
	for i, r := range o.Name {
		switch {
		case r == '_':
			r = ' '
		case i > 0 && r >= 'A' && r <= 'Z':
			b.WriteByte(' ')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// InputSchema is the JSON schema of the input: an object without other properties.
func (o Op) InputSchema() (*jsonschema.Schema, error) {
	s, err := schemaFor(o.in, true)
	if err != nil {
		return nil, fmt.Errorf("schema of the input of %s: %w", o.Name, err)
	}
	return s, nil
}

// OutputSchema is the JSON schema of the result.
func (o Op) OutputSchema() (*jsonschema.Schema, error) {
	s, err := schemaFor(o.out, false)
	if err != nil {
		return nil, fmt.Errorf("schema of the output of %s: %w", o.Name, err)
	}
	return s, nil
}

// All is every operation, in the order of the documentation.
func All() []Op {
	var all []Op
	for _, part := range [][]Op{teamOps(), memberOps(), taskOps(), talkOps(), approvalOps(), edgeOps(), lookOps(), waitOps(), agentOps()} {
		all = append(all, part...)
	}
	return all
}

// Find is the operation of that name. CodeNotFound; the hint has what is near.
func Find(name string) (Op, error) {
	var names []string
	near := ""
	for _, o := range All() {
		if o.Name == name {
			return o, nil
		}
		if strings.EqualFold(strings.ReplaceAll(o.Name, "_", ""), strings.ReplaceAll(name, "_", "")) {
			near = o.Name
		}
		names = append(names, o.Name)
	}
	e := team.Errorf(team.CodeNotFound, "there is no operation %q", name).WithReason(team.ReasonOperationNotFound)
	if near != "" {
		return Op{}, e.WithHint("it is called " + near)
	}
	if near = team.Closest(name, names); near != "" {
		return Op{}, e.WithHint("did you mean " + near + "?")
	}
	return Op{}, e.WithHint("teamctl call lists the operations")
}
