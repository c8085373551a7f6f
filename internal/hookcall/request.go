package hookcall

import (
	"encoding/binary"
	"errors"
	"time"
)

// Protocol and Path are those of the frames, and LedgerHeader names the ledger that a request is
// about, in the form of package fileid.
const (
	Protocol     = "teamctl-hook"
	Path         = "/v1/hook"
	LedgerHeader = "Teamctl-Ledger"
)

// Within bounds the wait for the supervisor's answer. The supervisor has half of it.
const Within = 2 * time.Second

// Request is one call of a hook.
type Request struct {
	CLI, Event string
	// AgentID, Generation, Token and Notify are those of the agent's environment.
	AgentID, Generation, Token, Notify string
	// Program is the teamctl that would run the hook, in the form of package fileid.
	Program string
	At      time.Time // when the hook began
	Input   []byte    // all of the standard input
}

// Answers of the supervisor: nothing is left to do, or the hook has to run.
const (
	Done = "true"
	Runs = "false"
)

var errRequest = errors.New("the request of a hook is malformed")

// texts are the fields that travel, in their order.
func (r *Request) texts() []*string {
	return []*string{&r.CLI, &r.Event, &r.AgentID, &r.Generation, &r.Token, &r.Notify, &r.Program}
}

// Append adds the request to b: each field with its length in four bytes, the time in eight.
func (r Request) Append(b []byte) []byte {
	for _, s := range r.texts() {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(*s))), *s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(r.At.UnixNano()))
	return append(binary.BigEndian.AppendUint32(b, uint32(len(r.Input))), r.Input...)
}

// Parse reads what Append wrote; Input points into it.
func Parse(b []byte) (r Request, err error) {
	field := func() []byte {
		if err != nil || len(b) < 4 || uint64(len(b)-4) < uint64(binary.BigEndian.Uint32(b)) {
			err = errRequest
			return nil
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		f := b[4:n]
		b = b[n:]
		return f
	}
	for _, s := range r.texts() {
		*s = string(field())
	}
	if err != nil || len(b) < 8 {
		return Request{}, errRequest
	}
	r.At = time.Unix(0, int64(binary.BigEndian.Uint64(b)))
	b = b[8:]
	r.Input = field()
	if err != nil || len(b) > 0 {
		return Request{}, errRequest
	}
	return r, nil
}
