// Package teamfile reads teamctl.yaml: a whole team (members and tasks) in one
// file, and the same task list on its own for "task add -f".
//
// Reading is strict and changes nothing: an unknown key, a wrong type, an id used
// twice, a dependency that does not exist and a cycle are errors that stand at
// their line and column, in the form "file:line:column: what". All errors of a
// file are reported at once. JSON is YAML, so a JSON file is read the same way.
//
// The shapes are the exported types; the JSON schema that editors use is made
// from them (Schema) and checked in as docs/teamctl.schema.json.
package teamfile

//go:generate go run ../../scripts/gen
