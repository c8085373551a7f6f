// Package courier carries mail into agents that are not ours, and brings back
// what is seen of them. The room adapter describes each CLI as pure functions and
// data; this one executes: it speaks to sockets and servers, reads screens, and
// types as the last way.
//
// Open gives a Channel for one generation of one member. A channel is owned by
// the member's supervisor, which hands it mail, the most urgent first, and calls
// it again with what was held whenever an observation comes in. What the channel
// sees it reports; it decides nothing. It keeps no facts of its own that a kill -9
// may lose: the ledger knows what was given, the bundle (link.json) how the agent
// is reached, and the CLI its conversation. So the next supervisor opens the same
// generation again and goes on.
//
// Each dialect is a package below this one, and its documentation says how the program gets
// its mail and what counts as evidence: codex (the app-server of Codex), opencode (its server),
// acp (the Agent Client Protocol) and hook (the hooks of Claude Code and Gemini CLI). Here is
// what they share, and the ways of any program: typing, asking (pull), and the supervisor's side
// of hooks, which types one line to wake an idle agent, or the mail itself where no hook is
// heard.
//
// A message is given at most once in a conversation: whoever hands it over moves
// its delivery to injected first, and one that stands there is given again only
// where it can be shown that the CLI does not have it.
package courier
