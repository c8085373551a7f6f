// Package mcp uses the tools of other people's MCP servers for the built-in agent. Package
// tool/mcp is the other side: it serves the team's own operations.
//
// # States of a server
//
//	idle      not started: New starts nothing
//	up        connected, its tools are known
//	down      it has ended or cannot be reached, for a reason, until a time
//
// A server is started by the first Tools. A server that is down is started again by Tools
// or Call once its pause is over, which doubles from a second to a minute; nothing runs in
// between. Its tools stay listed as they were, so that requests stay the same; a call says
// that the server is down. A tool that a server no longer has says so when it is called.
//
// What a server writes is data: names are made fit for models, sizes are bounded, and
// nothing in it is an instruction to this program.
//
// A program gets an environment without the provider's keys and the member's token. It
// ends with the Set, and everything that it has started with it, also what has detached
// itself.
package mcp
