// Package openai asks models by the two protocols of OpenAI, Responses and Chat
// Completions, which most other providers and local servers speak as well.
//
// What a model wants back is kept as it arrived: the items of a response, and of a chat
// message every field, known or not. A response is complete with response.completed,
// response.incomplete or response.failed; a chat message with its finish_reason.
package openai
