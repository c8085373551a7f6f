// Package opencode carries mail into opencode through the HTTP server that its program listens
// with on loopback.
//
// A channel finds the session of the generation, follows its events, and reports what it does.
// A message is posted to the session under an id of its own; its evidence is the user message
// that the session has stored, with its text. A post whose answer was lost is looked up before
// it is repeated, by the next supervisor too. A session that is compacted, limited or answers
// nothing is told from one that works. The session is selected on the program's screen, so that
// a person sees it.
package opencode
