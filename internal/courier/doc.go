// Package courier delivers mail to agents whose programs are not part of teamctl, and reports what
// they do. Package adapter describes each CLI as pure functions and data; this package executes:
// it talks to sockets and servers, reads screens, and types as a last resort.
//
// Open returns a Channel for one generation of one member. The member's supervisor owns the
// channel. It passes mail to it, most urgent first, and passes held mail again after each
// observation. The channel reports what it observes and decides nothing. It keeps no facts that a
// kill -9 could lose: the ledger knows what was delivered, the bundle (link.json) how the agent is
// reached, and the CLI its conversation. The next supervisor can therefore open the same
// generation again.
//
// Each protocol is a package below this one. Its documentation says how the program gets its mail
// and what counts as evidence: codex (the app-server of Codex), opencode (its HTTP server), acp
// (the Agent Client Protocol) and hook (the hooks of Claude Code and Gemini CLI, and the channel
// that wakes their agents). This package has what they share and the ways that work with any
// program: typing, and agents that fetch their mail (pull).
//
// A message is delivered at most once to a conversation: the deliverer first moves the delivery to
// injected, and an injected message is delivered again only if the CLI provably does not have it.
package courier
