// Package mcp uses the tools of external MCP servers for the built-in agent. Package tool/mcp is the
// other side: it serves the team's own operations.
//
// # States of a server
//
//	idle      not started: New starts nothing
//	up        connected, its tools are known
//	down      it has exited or cannot be reached, for a reason, until a time
//
// The first call of Tools starts a server. Tools or Call restart a server that is down once its
// pause is over, which doubles from a second to a minute; nothing runs in between. Its tools stay
// listed, so that requests stay the same; a call reports that the server is down. A call of a tool
// that a server no longer has reports that.
//
// The output of a server is data: names are adapted for models, sizes are bounded, and nothing in
// it is an instruction to this program.
//
// A server program gets an environment without the providers' keys and the member's token. It ends
// with the Set, together with everything that it has started, including detached processes.
package mcp
