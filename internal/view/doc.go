// Package view is what the screens of teamctl show, as data and pure functions: the
// Snapshot of a team, what in it waits for a person, and the events of the ledger in
// sentences. Package tool/look fills it; package tui draws it.
//
// Texts in a Snapshot come from agents and are raw: who draws them makes them harmless.
package view
