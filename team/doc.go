// Package team holds the words that every other room uses: names and agent ids,
// roles, colours, permission modes, member and task states with their
// transition tables, the schema of config.json, coded errors, and the layout of
// the home directory. It imports the standard library only and touches no
// database, network or process.
package team
