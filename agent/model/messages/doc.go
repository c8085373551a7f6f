// Package messages implements Anthropic's Messages protocol.
//
// The content of an answer is kept as the blocks that arrived, each with all its fields; pieces
// are joined byte for byte. message_stop completes an answer.
package messages
