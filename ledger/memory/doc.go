// Package memory keeps what agents of the built-in kind want to remember beyond a
// conversation: one SQLite file in the home directory of teamctl, for all teams.
//
// An entry has a key TEAM/AGENT/NAME, a text, tags, and the session that wrote it. Only a
// tool call of an agent, or a person, writes one. Search is SQLite's full-text search
// (FTS4, which every build has); results are ranked by match, then by how near they are to
// the asker: the same session, agent, team, then by age.
//
// Several processes may use the file: each operation is one transaction, and waits for
// others. Export is sorted and stable, so that it can be kept under version control, and
// an import of it changes nothing.
package memory
