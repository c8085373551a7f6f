// Package messages asks models by Anthropic's Messages protocol.
//
// The content of an answer is kept as the blocks that arrived, each with all its fields:
// what comes in pieces is joined as it was written. An answer is complete with
// message_stop.
package messages
