// Package model sends requests to language models.
//
// A [Provider] carries out one [Request] and streams its answer. A provider keeps nothing between
// two requests: each request has the whole conversation, and the answer adds one message to it.
//
// # Complete or failed
//
// Stream returns an [Answer] only after the last event defined by the provider's protocol
// (message_stop, response.completed, finish_reason). A connection that ends before that event,
// even cleanly, is an [*Error] of kind [Cut]; text streamed until then was passed to the caller's
// function and has no other use.
//
// # The provider's own bytes
//
// Models return fields that they need back unchanged: signatures of their reasoning, encrypted
// reasoning, fields unknown to any library. [Message.Raw] keeps them. They are sent back byte for
// byte to the model that produced them; every other model gets the text, the calls and their
// results instead.
//
// # Errors
//
// Every failed request is an [*Error] whose [Kind] says what a caller can do about it. Providers
// do not retry: the loop that sends requests does.
package model
