// Package fakemodel is a model for tests: an HTTP server on loopback that speaks
// the protocols which agent CLIs speak to a model, and answers by a script that
// stands in the conversation itself.
//
// Protocols: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini
// generateContent, each streaming and not, with the model lists and token counts
// that the CLIs ask for.
//
// A script is lines in any text that reaches the model: the prompt, a hook's
// context, a tool's result, a steered message.
//
//	@@call TOOL {"json":"input"}   call a tool; TOOL is its name or the end of it, $REQUEST in it the
//	                               id of a request to shut down
//	@@shell COMMAND                call whatever tool runs a shell here
//	@@say TEXT                     answer and end the turn
//	@@sleep 2s                     wait before the next step
//	@@fail 529 TEXT                answer with this status
//
// Each answer of the model is one step; a text that arrives later is carried out
// before what is left of an earlier one. A tool's result that repeats what the call
// has sent to somebody else is not carried out. Without a step the answer is "ok". So a
// test knows that a message was delivered: the model acted on it, and its request
// is on record.
//
// The position in a script is read from the conversation of every request and kept
// nowhere, so a session that is resumed goes on where it was. Requests that offer no
// tool are the CLI's own side work (titles, summaries): they are answered with a
// word and carry out nothing.
package fakemodel
