// Package wire carries requests to providers over HTTP and reads the events that come
// back: what all protocols share and none of them defines.
//
// An [Endpoint] sends one request, follows no redirect and retries nothing. A refusal is a
// [model.Error] whose kind, pause and end of a limit come from the status, the headers and
// the provider's own words.
//
// A [Stream] returns server-sent events as they arrive: LF, CR LF or CR, several data
// lines, comments, a missing blank line at the end, lines of up to [MaxLine] bytes. It does
// not know which event is the last one of an answer; a protocol that meets io.EOF before
// it reports [Endpoint.Cut].
//
// JSON that models want back is never decoded and encoded again: an [Object] keeps the
// order and the bytes of its fields, and strings that arrive in pieces are joined as they
// are written, escapes included.
package wire
