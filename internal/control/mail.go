package control

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/teamctl/teamctl/ledger"
)

// mailPath is where the supervisor's process takes what is to be mailed, as frames. It has
// connections of its own: an operation does not wait for a mailbox.
const mailPath = "/v1/mail"

var _ ledger.Postman = (*Client)(nil)

// Mail has the supervisor mail what was posted. False where it did not, for whatever
// reason: then the caller does.
func (c *Client) Mail(ctx context.Context, d ledger.Delivery) (ledger.Delivery, bool) {
	args, err := json.Marshal(d)
	if err != nil {
		return d, false
	}
	mail := c.postal()
	mail.mu.Lock()
	none := mail.noStream
	mail.mu.Unlock()
	if none {
		return d, false
	}
	res, err := mail.stream(ctx, ledger.Op{ID: d.MessageID, Name: "mail", Args: args})
	if errors.Is(err, errNoStream) {
		mail.mu.Lock()
		mail.noStream = true
		mail.mu.Unlock()
	}
	now := d
	if err != nil || json.Unmarshal(res, &now) != nil {
		return d, false
	}
	return now, true
}

// postal is the client of the same supervisor for mail.
func (c *Client) postal() *Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mail == nil {
		c.mail = &Client{socket: c.socket, ledger: c.ledger, lock: c.lock, path: mailPath}
	}
	return c.mail
}
