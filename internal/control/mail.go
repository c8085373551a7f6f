package control

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
)

// A request on /v1/mail is a posted delivery as JSON, and a result is the delivery with its
// new state. After an error the client mails the delivery itself.
const (
	mailProtocol = "teamctl-mail"
	mailPath     = "/v1/mail"
)

// mailFrames mails what other processes have posted.
type mailFrames struct{ queue mail.Settler }

func (f mailFrames) answer(ctx context.Context, frame []byte) (json.RawMessage, error) {
	var d ledger.Delivery
	if json.Unmarshal(frame, &d) != nil {
		return nil, errFrame
	}
	d, err := f.queue.Settle(ctx, d)
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// Settle makes the supervisor mail a posted delivery. It may be called again: nothing is done
// twice.
func (c *Client) Settle(ctx context.Context, d ledger.Delivery) (ledger.Delivery, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return d, fmt.Errorf("encode a delivery: %w", err)
	}
	res, err := c.mail.ask(ctx, func(b []byte) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
	}, true)
	if err != nil {
		return d, err
	}
	now := d
	if err := json.Unmarshal(res, &now); err != nil {
		return d, fmt.Errorf("read the state of a delivery: %w", err)
	}
	return now, nil
}
