// Package codex delivers mail to Codex through the app-server, which its program serves on a
// socket.
//
// A channel finds the thread of the generation, subscribes to it, and reports its status. A
// message to an idle thread begins a turn; a message to a busy thread is steered into the turn and
// arrives at the next tool boundary. Each message has a client id: the evidence of its arrival is
// the item of the thread with that id and text. The channel records a delivery in the bundle's
// journal before it sends it. After a reconnect, or under the next supervisor, the channel
// therefore asks the thread before it sends the message again. A message that the thread does not
// have, for instance because the turn was interrupted before its next boundary, goes with the next
// turn. Approvals, usage limits and failed turns arrive over the same connection.
//
// Trust asks the app-server whether the user trusts a directory; teamctl never declares it.
package codex
