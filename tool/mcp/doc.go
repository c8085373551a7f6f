// Package mcp serves the operations of package op to MCP clients, with the official SDK; it is the
// only package that knows the protocol.
//
// # Identity
//
// The start of the server determines who a client is: the environment, flags and the token of a
// member. Nothing depends on initialize, which the newest clients never send. A client started by a
// member is that member; a client without an identity is a program that leads the team, with the
// permission mode of the lead. The identity is verified with every call.
//
// # Tools
//
// The server announces the tools that the caller's role, permission mode and team allow, and
// announces them again when one of these changes. A call of any other operation is answered by the
// operation itself, with the same refusal as elsewhere.
//
// # Results
//
// A result is structured content, and the same JSON as text. An error is a tool error: the text is
// {"success": false, "error", "code", "reason", "hint"}, the same as the "error" of teamctl --json,
// with the codes of docs/tools.md.
//
// # Resources
//
// The roster, the task board, the caller's mailbox and the caller's thread are resources. While a
// client subscribes to one, it is notified of changes. The server waits for events, so it uses no
// CPU while nothing changes.
package mcp
