//go:build !linux && !darwin

package ledger

// refuseNetworkFS relies on the check of journal_mode: SQLite itself refuses
// WAL where it cannot map shared memory.
func refuseNetworkFS(string) error { return nil }
