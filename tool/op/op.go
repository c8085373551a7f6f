// Package op is the table of operations for other programs: each operation once, with the
// documented names and parameters, the schemas of its input and output from the Go types, a
// description from doc/NAME.md, and who may call it.
//
// [Session.Call] is the only entry point. The MCP server and teamctl call use it with JSON; a Go
// program does the same, or calls package tool with its types. All ways therefore refuse the same
// calls with the same errors.
//
// # Strict inputs
//
// Unknown and missing parameters are refused by name; a null parameter counts as missing. A
// refused input has had no effect.
//
// # Availability
//
// The caller's role (by the table of package tool), the permission mode and the team's settings
// determine which operations are available. [Session.Offered] applies them to a list of tools; the
// operations themselves check again on every call.
package op

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Op is one operation.
type Op struct {
	Name string
	Verb string // the equivalent command: "task add"
	// Gates are operations in the table of roles: permission for one of them is enough to use this
	// operation. None: everyone may use it.
	Gates       []tool.Operation
	ReadOnly    bool // changes nothing visible to others
	Destructive bool // removes something that may be needed
	Idempotent  bool // repeating it changes nothing more
	Outside     bool // works without a team
	Long        bool // may wait for others: reports progress, can be cancelled
	// Also has alternative names of parameters, from documents in which the usual name means
	// something else here.
	Also map[string]string

	in, out reflect.Type
	decode  func(raw json.RawMessage) (any, error)
	run     func(ctx context.Context, s *Session, in any) (any, error)
}

// with completes an operation with its function.
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

// Decode validates a JSON input and returns it as the operation's input type.
func (o Op) Decode(input json.RawMessage) (any, error) {
	raw, err := o.checkInput(input)
	if err != nil {
		return nil, err
	}
	return o.decode(raw)
}

// TeamRef names the team of an operation; every input except those of TeamCreate and TeamDelete
// has it.
type TeamRef struct {
	TeamName string `json:"team_name,omitempty" jsonschema:"Name of the team; the current one if left out."`
}

//go:embed doc/*.md
var docs embed.FS

// Doc returns the description for a model, in Markdown: purpose, when to use it, an example,
// refusals.
func (o Op) Doc() string {
	b, err := docs.ReadFile("doc/" + o.Name + ".md")
	if err != nil {
		return "" // TestDocs reports it
	}
	return strings.TrimSpace(string(b))
}

// Title returns the name in words.
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

// InputSchema returns the JSON schema of the input: an object without other properties.
func (o Op) InputSchema() (*jsonschema.Schema, error) {
	s, err := schemaFor(o.in, true)
	if err != nil {
		return nil, fmt.Errorf("schema of the input of %s: %w", o.Name, err)
	}
	return s, nil
}

// OutputSchema returns the JSON schema of the result.
func (o Op) OutputSchema() (*jsonschema.Schema, error) {
	s, err := schemaFor(o.out, false)
	if err != nil {
		return nil, fmt.Errorf("schema of the output of %s: %w", o.Name, err)
	}
	return s, nil
}

// All returns all operations, in the order of the documentation.
func All() []Op { return slices.Clone(all()) }

// all is All for those who do not change it.
var all = sync.OnceValue(func() []Op {
	var all []Op
	for _, part := range [][]Op{teamOps(), memberOps(), taskOps(), talkOps(), approvalOps(), edgeOps(), reviewOps(), lookOps(), waitOps(), agentOps(), sessionOps()} {
		all = append(all, part...)
	}
	return all
})

// Find returns the operation with a name. CodeNotFound; the hint has similar names.
func Find(name string) (Op, error) {
	var names []string
	near := ""
	for _, o := range all() {
		if o.Name == name {
			return o, nil
		}
		if strings.EqualFold(strings.ReplaceAll(o.Name, "_", ""), strings.ReplaceAll(name, "_", "")) {
			near = o.Name
		}
		names = append(names, o.Name)
	}
	e := team.Errorf(team.CodeNotFound, "unknown operation %q", name).WithReason(team.ReasonOperationNotFound)
	if near != "" {
		return Op{}, e.WithHint("it is called " + near)
	}
	if near = team.Closest(name, names); near != "" {
		return Op{}, e.WithHint("did you mean " + near + "?")
	}
	return Op{}, e.WithHint("teamctl call lists the operations")
}
