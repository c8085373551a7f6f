// Package openai implements the two protocols of OpenAI, Responses and Chat Completions, which
// most other providers and local servers also speak.
//
// Everything that a model needs back is kept as it arrived: the items of a response, and every
// field, known or not, of a chat message. A response is complete with response.completed,
// response.incomplete or response.failed; a chat message with its finish_reason.
package openai
