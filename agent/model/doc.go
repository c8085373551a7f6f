// Package model asks language models.
//
// A [Provider] carries out one [Request] and streams its answer. A provider keeps
// nothing between two requests: the whole conversation is in each request, and the
// answer returns it one message longer.
//
// # Complete or not at all
//
// Stream returns an [Answer] only after the last event that the provider's protocol
// defines (message_stop, response.completed, finish_reason). A connection that ends
// before it, even cleanly, is an [*Error] of kind [Cut]; what was streamed until then
// was shown to the caller's function and is worth nothing else.
//
// # The provider's own bytes
//
// Models return fields that they want back unchanged: signatures of their reasoning,
// encrypted reasoning, fields that no library knows. [Message.Raw] keeps them. They are
// sent back byte for byte to the model that produced them and left out for every other,
// which gets the text, the calls and their results instead.
//
// # Errors
//
// Every failed request is an [*Error] whose [Kind] says what a caller can do about it.
// No provider retries by itself: the loop that asks does.
package model
