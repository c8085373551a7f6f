// Package fakemodel is a model for tests: an HTTP server on loopback that speaks
// the protocols which agent CLIs speak to a model, and answers by a script that
// stands in the conversation itself.
//
// Protocols: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini
// generateContent, each streaming and not, with the model lists and token counts
// that the CLIs ask for.
//
// The lines of a script are those of package script; without one the answer is "ok". So a
// test knows that a message was delivered: the model acted on it, and its request
// is on record.
//
// Requests that offer no tool are the CLI's own side work (titles, summaries): they are
// answered with a word and carry out nothing.
//
// [Server.Strict] refuses what the vendors refuse and answers as real models do, in pieces
// and with signed reasoning; [Server.Break] makes answers go wrong. The servers that agent
// CLIs ask are neither.
package fakemodel
