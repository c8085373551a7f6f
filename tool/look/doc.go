// Package look reads the data that screens show of a team, a view.Snapshot, from the ledger and
// its underlying sources, and follows it as it changes. It changes nothing.
package look
