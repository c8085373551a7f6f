// Package specfile stores agent specs in files that people write and share: one agent.toml for
// each, in a directory named by its id.
//
// Encoding is canonical: a written file decodes to the same spec, and that encodes to the same
// bytes. Keys are sorted, and an empty list is kept, since it permits nothing, whereas a missing
// list filters nothing.
package specfile
