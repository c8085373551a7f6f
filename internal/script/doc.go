// Package script interprets the scripts of models that do not think: the script model of
// the built-in agent, and the test server of package fakemodel.
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
// has sent to somebody else is not carried out.
//
// The position in a script is read from the conversation and kept nowhere, so a session
// that is resumed goes on where it was.
package script
