package control

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// After "Upgrade: teamctl-ops" on /v1/ops a connection carries frames: a length of
// four bytes, big endian, and as many bytes. A request is one operation, its fields
// one after the other, each with its length in four bytes, the time in eight:
// id, name, who, at, args. An answer is one byte, 0 for a result and 1 for an error,
// and JSON. There is one answer to each request, in their order.
//
// HTTP costs more than a claim does: with it half of a supervisor's time went into
// headers.
const (
	opsProtocol = "teamctl-ops"
	opsPath     = "/v1/ops"
)

const (
	answerResult = 0
	answerError  = 1
)

var errFrame = errors.New("a frame is malformed")

// appendOp is op as a frame.
func appendOp(b []byte, op ledger.Op) []byte {
	b = append(b, 0, 0, 0, 0)
	for _, s := range []string{op.ID, op.Name, op.Who} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(op.At))
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(op.Args))), op.Args...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// parseOp reads a frame's content; op.Args points into it.
func parseOp(b []byte) (op ledger.Op, err error) {
	field := func() (f []byte) {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
			err, b = errFrame, nil
			return nil
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		f, b = b[4:n], b[n:]
		return f
	}
	op.ID, op.Name, op.Who = string(field()), string(field()), string(field())
	if len(b) < 8 {
		return op, errFrame
	}
	op.At = int64(binary.BigEndian.Uint64(b))
	b = b[8:]
	if args := field(); len(args) > 0 {
		op.Args = args
	}
	if err == nil && len(b) > 0 {
		err = errFrame
	}
	return op, err
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

// readFrame reads one frame into memory of its own.
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
