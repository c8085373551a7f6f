package control

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/teamctl/teamctl/team"
)

// After an upgrade a connection carries frames: a length of four bytes, big endian, and that
// many bytes. The protocol defines the requests. An answer is one byte, 0 for a result and
// 1 for an error, and JSON. There is one answer to each request, in their order.
//
// HTTP costs more than a claim: with it a supervisor would spend half of its time on headers.
const (
	answerResult = 0
	answerError  = 1
)

var errFrame = errors.New("a frame is malformed")

// framer answers the requests of a connection, one at a time. After an error that wraps
// errFrame nothing that follows can be understood, and the connection ends.
type framer interface {
	answer(ctx context.Context, frame []byte) (json.RawMessage, error)
}

// appendAnswer is an answer as a frame.
func appendAnswer(b []byte, res json.RawMessage, err error) []byte {
	kind := byte(answerResult)
	if err != nil {
		kind = answerError
		res, _ = json.Marshal(errorOf(err)) // plain strings
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(res)+1))
	return append(append(b, kind), res...)
}

// parseAnswer reads an answer's content.
func parseAnswer(b []byte) (json.RawMessage, error) {
	if len(b) == 0 {
		return nil, errFrame
	}
	if b[0] == answerResult {
		return b[1:], nil
	}
	e := &team.Error{}
	if json.Unmarshal(b[1:], e) != nil || e.Code == "" {
		return nil, team.Errorf(team.CodeInternal, "the supervisor answered %.200q", b)
	}
	return nil, e
}

// readFrame reads one frame into newly allocated memory.
func readFrame(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxBody {
		return nil, errFrame
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
