// Package specfile keeps agent specs in files that people write and share: one agent.toml
// for each, in a directory of its id.
//
// A file that was written here is read to the same spec, and that is written to the same
// bytes: keys are sorted, and an empty list stays, because it allows nothing where none at
// all filters nothing.
package specfile
