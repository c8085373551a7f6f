package op

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// AnnounceSchema is the JSON schema of the meta_json of an announce: what a session is told
// about the end of a turn of its child. Only what may be unknown may be null.
func AnnounceSchema() (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(reflect.TypeFor[team.Announce](), &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[team.AnnounceStatus](): enum(team.AnnounceStatuses()),
		reflect.TypeFor[team.ArtifactKind]():   enum([]team.ArtifactKind{team.ArtifactFile, team.ArtifactCommit}),
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of an announce: %w", err)
	}
	tighten(s.Properties["task"])
	tighten(s.Properties["result"])
	internal, kind := any(true), any(team.AnnounceKind)
	s.Properties["internal"].Const, s.Properties["kind"].Const = &internal, &kind
	s.Properties["result"].Properties["summary"].MaxLength = jsonschema.Ptr(team.MaxSummary)
	s.ID = "https://github.com/teamctl/teamctl/docs/announce.schema.json"
	s.Title = "The announce of a child session"
	return s, nil
}

// AnnounceSchemaFile is docs/announce.schema.json.
func AnnounceSchemaFile() ([]byte, error) {
	s, err := AnnounceSchema()
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}
