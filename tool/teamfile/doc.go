// Package teamfile reads teamctl.yaml: a whole team (members and tasks) in one file, and the task
// list on its own for "task add -f".
//
// Reading is strict and changes nothing: an unknown key, a wrong type, a duplicate id, an unknown
// dependency and a cycle are errors with their line and column, in the form "file:line:column:
// message". All errors of a file are reported at once. JSON is YAML, so a JSON file is read in the
// same way.
//
// The exported types define the format; the JSON schema for editors is generated from them
// (Schema) and checked in as docs/teamctl.schema.json.
package teamfile

//go:generate go run ../../scripts/gen
