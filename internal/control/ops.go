package control

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/ledger"
)

// A request on /v1/ops is one operation of the ledger, its fields one after the other, each
// with its length in four bytes, the time in eight: id, name, who (and after a slash by which screen), at, args.
const (
	opsProtocol = "teamctl-ops"
	opsPath     = "/v1/ops"
)

// opFrames applies operations.
type opFrames struct{ writer ledger.Writer }

func (f opFrames) answer(ctx context.Context, frame []byte) (json.RawMessage, error) {
	op, err := parseOp(frame)
	if err != nil {
		return nil, err
	}
	return f.writer.Write(ctx, op)
}

// appendOp is op as a frame.
func appendOp(b []byte, op ledger.Op) []byte {
	b = append(b, 0, 0, 0, 0)
	who := op.Who
	if op.Via != "" { // no name has a slash
		who += "/" + op.Via
	}
	for _, s := range []string{op.ID, op.Name, who} {
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
	if who, via, ok := strings.Cut(op.Who, "/"); ok && via != "" {
		op.Who, op.Via = who, via
	}
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
