//go:build !linux

package tool

// watchChecks: kqueue has no limit of its own.
func watchChecks() []Check { return nil }
