// Package look reads what screens show of a team, a view.Snapshot, from the ledger and
// from what stands behind it, and follows it as it changes. It changes nothing.
package look
