// Package opencode delivers mail to opencode through the HTTP server that its program runs on
// loopback.
//
// A channel finds the session of the generation, follows its events, and reports its status. A
// message is posted to the session under an id chosen by the channel; its evidence is the user
// message that the session has stored, with its text. A post without an answer is looked up before
// it is repeated, also by the next supervisor. The channel tells a session that is compacting,
// limited or without an answer from one that works. It selects the session on the program's
// screen, so that a person sees it.
package opencode
