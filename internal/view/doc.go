// Package view is the content of teamctl's screens, as data and pure functions: the Snapshot of a
// team, what in it waits for a person, and the ledger's events as sentences. Package tool/look
// fills it; package tui draws it.
//
// Texts in a Snapshot come from agents and are raw: packages that draw them must escape them.
package view
