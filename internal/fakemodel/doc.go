// Package fakemodel is a model for tests: an HTTP server on loopback that implements the protocols
// which agent CLIs use, and answers by a script in the conversation itself.
//
// Protocols: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini
// generateContent, each streaming and not, with the model lists and token counts that the CLIs
// request.
//
// Package script defines the lines of a script; without one the answer is "ok". A test therefore
// knows that a message was delivered: the model acted on it, and its request was recorded.
//
// Requests without tools are the CLI's own side work (titles, summaries): they are answered with a
// word and carry out nothing.
//
// [Server.Strict] refuses what the vendors refuse and answers like real models, in pieces and with
// signed reasoning; [Server.Break] makes answers fail. The servers for agent CLIs use neither.
package fakemodel
