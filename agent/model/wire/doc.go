// Package wire sends requests to providers over HTTP and reads the returned events: what all
// protocols share and none of them defines.
//
// An [Endpoint] sends one request, follows no redirect and does not retry. A refusal is a
// [model.Error] whose kind, pause and end of a limit come from the status, the headers and the
// provider's text.
//
// A [Stream] returns server-sent events as they arrive: LF, CR LF or CR, several data lines,
// comments, a missing blank line at the end, lines of up to [MaxLine] bytes. It does not know the
// last event of an answer; a protocol that meets io.EOF before that returns [Endpoint.Cut].
//
// JSON that models need back is never decoded and encoded again: an [Object] preserves the order
// and the bytes of its fields, and strings that arrive in pieces are joined byte for byte, escapes
// included.
package wire
