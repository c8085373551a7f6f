// Package codex carries mail into Codex through the app-server that its program listens with
// on a socket.
//
// A channel finds the thread of the generation, subscribes to it, and reports what it does. To
// an idle thread a message begins a turn; to a busy one it is steered into the turn and arrives
// at the next tool boundary. A message is known by the client id that it was given with: its
// evidence is the item of the thread with that id and its text. A delivery is noted in the
// bundle's journal before it is handed over, so the next supervisor, and a channel that
// connects again, ask the thread before they give it again: one that the thread does not have,
// for instance because the turn was interrupted before its next boundary, goes with the next
// turn. Approvals, usage limits and failed turns arrive by the same connection.
//
// Trust asks the app-server whether the person trusts a directory; teamctl never declares it.
package codex
