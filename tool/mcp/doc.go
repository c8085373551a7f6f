// Package mcp serves the operations of package op to MCP clients, over the
// official SDK; it is the only room that knows the protocol.
//
// # Identity
//
// Who a client is, says what started the server: the environment, flags and the
// token of a member. Nothing depends on initialize, which the newest clients never
// send. A client of a member is that member, one without an identity is the person
// that leads, in the permission mode of the lead. It is verified with every call.
//
// # What is offered
//
// Tools are those that the caller's role, permission mode and team allow, and are
// announced anew when one of these changes. A call of any other operation is
// answered by the operation, with the refusal that every door gives.
//
// # Results
//
// A result is structured content, and the same JSON as text. An error is a tool
// error: the text is {"success": false, "error", "code", "reason", "hint"}, the
// same as the "error" of teamctl --json, with the codes of docs/tools.md.
//
// # What changes
//
// Roster, task board, own mailbox and own thread are resources. While a client has
// subscribed to one, a change of the ledger that changes it is notified. The watch
// is by event: a server at rest uses no CPU.
package mcp
