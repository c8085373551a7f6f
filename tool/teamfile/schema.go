package teamfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/team"
)

// Schema returns the JSON schema of teamctl.yaml, indented, with a final newline.
func Schema() ([]byte, error) {
	text := func(s string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: s} }
	enum := func(about string, words ...string) *jsonschema.Schema {
		s := text(about)
		for _, w := range words {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	s, err := jsonschema.For[File](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[team.Role](): enum("what the member may do, default executor",
			string(team.RoleLeader), string(team.RoleExecutor), string(team.RoleReviewer), string(team.RoleObserver), string(team.RoleOperator)),
		reflect.TypeFor[team.RestartPolicy](): enum("when an exited member is started again, default on-failure",
			string(team.RestartNever), string(team.RestartOnFailure), string(team.RestartAlways)),
		reflect.TypeFor[team.Mode](): enum("permission mode, default default",
			string(team.ModeDefault), string(team.ModeAcceptEdits), string(team.ModeBypass), string(team.ModePlan), string(team.ModeDelegate), string(team.ModeDontAsk)),
		reflect.TypeFor[team.Servers](): enum("MCP servers that it starts with, default all: those of its program's configuration as well as teamctl's; team: teamctl's only",
			string(team.ServersAll), string(team.ServersTeam)),
		reflect.TypeFor[team.EdgeType](): enum("how the two work with each other", string(team.EdgeDelegates), string(team.EdgeReviews),
			string(team.EdgeReportsTo), string(team.EdgeSharesContext), string(team.EdgeHandoff)),
		reflect.TypeFor[team.Limits](): LimitsSchema(),
		reflect.TypeFor[team.Budget](): budgetSchema(),
		reflect.TypeFor[OnLimit](): enum("what happens when the usage limit of a provider is over, default wait: until teamctl usage resume",
			OnLimitWait, OnLimitResume),
		reflect.TypeFor[team.Permissions](): permissionsSchema(),
		reflect.TypeFor[Worktrees]():        worktreesSchema(),
		reflect.TypeFor[hooks.Set]():        hooksSchema(),
		reflect.TypeFor[Repos]():            reposSchema(),
		reflect.TypeFor[Servers]():          serversSchema(),
		reflect.TypeFor[Lanes]():            lanesSchema(),
		reflect.TypeFor[team.PaneLayout]():  enum("where a terminal backend puts it, default auto", layouts...),
	}})
	if err != nil {
		return nil, fmt.Errorf("make the schema: %w", err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "https://github.com/teamctl/teamctl/docs/teamctl.schema.json"
	s.Title = "teamctl.yaml"
	s.Description = "A team of coding agents: its members and its tasks."
	lists(s)
	ForDoor(s.Properties["members"].Items, reflect.TypeFor[Member](), "yaml")

	// The parser accepts numbers as ids and as values of variables.
	member, task := s.Properties["members"].Items, s.Properties["tasks"].Items
	scalar := []string{"string", "number", "boolean"}
	member.Properties["command"] = &jsonschema.Schema{
		Description: "command to run as the member: a list of words, or one line for bash",
		AnyOf: []*jsonschema.Schema{
			{Type: "string", MinLength: jsonschema.Ptr(1)},
			{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: jsonschema.Ptr(1)},
		},
	}
	member.Properties["exact"] = &jsonschema.Schema{Type: "boolean", Enum: []any{true}, Description: "always so: a member of a team file has exactly its name"}
	member.Properties["env"].AdditionalProperties = &jsonschema.Schema{Types: scalar}
	member.Properties["worktree"].Type, member.Properties["worktree"].Types = "", []string{"string", "boolean"}
	member.Properties["count"].Minimum = jsonschema.Ptr(1.0)
	member.Properties["count"].Maximum = jsonschema.Ptr(float64(maxCount))
	task.Properties["subject"].MinLength = jsonschema.Ptr(1)
	task.Properties["subject"].MaxLength = jsonschema.Ptr(team.MaxSubject)
	task.Properties["description"].MaxLength = jsonschema.Ptr(team.MaxDescription)
	task.Properties["id"] = &jsonschema.Schema{Types: []string{"string", "number"},
		Description: "name by which other tasks of the file depend on it"}
	task.Properties["dependsOn"] = &jsonschema.Schema{Type: "array",
		Description: "ids of the tasks that must be completed first",
		Items:       &jsonschema.Schema{Types: []string{"string", "number"}}}

	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

// ForDoor renames the properties of a schema, which was generated from the JSON names of a struct,
// to the names used by a door (file, flag, MCP), and removes those that the door lacks. Fields
// that are optional at every door are not required.
func ForDoor(s *jsonschema.Schema, t reflect.Type, door string) {
	for _, f := range team.DoorFields(t, door) {
		p := s.Properties[f.JSON]
		if p == nil {
			continue
		}
		delete(s.Properties, f.JSON)
		at := slices.Index(s.PropertyOrder, f.JSON)
		if f.Optional || f.Name == "-" {
			s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == f.JSON })
		}
		if f.Name == "-" {
			s.PropertyOrder = slices.Delete(s.PropertyOrder, at, at+1)
			continue
		}
		s.Properties[f.Name], s.PropertyOrder[at] = p, f.Name
		if i := slices.Index(s.Required, f.JSON); i >= 0 {
			s.Required[i] = f.Name
		}
	}
}

// lists makes every list a plain array: Go's nil slices would permit null as well, which the
// parser refuses.
func lists(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	lists(s.Items)
	for _, p := range s.Properties {
		lists(p)
	}
}
