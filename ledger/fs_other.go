//go:build !linux && !darwin

package ledger

// refuseNetworkFS relies on the journal_mode assertion here: SQLite itself
// refuses WAL where shared memory cannot be mapped.
func refuseNetworkFS(string) error { return nil }
