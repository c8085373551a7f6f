package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// viewPath answers with the frames of a member's screen (frame.go), as long as the client reads:
// each is its lines as JSON, and the last one is why there are no more. A client that reads late
// gets the newest frame, since no look begins before the last one was written.
const viewPath = "/v1/view"

func (s *server) serveView(w http.ResponseWriter, r *http.Request) {
	var in namesIn
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		refuse(w, team.Errorf(team.CodeInvalid, "read request: %w", err))
		return
	}
	if err := s.keeper.check(r.Header.Get(ledgerHeader)); err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	flush := http.NewResponseController(w)
	var out []byte
	send := func(res json.RawMessage, why error) {
		out = appendAnswer(out[:0], res, why)
		if _, err := w.Write(out); err != nil || flush.Flush() != nil {
			cancel()
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	err = s.sup.View(ctx, one(in.Names), func(lines []string) {
		res, err := json.Marshal(lines)
		send(res, err)
	})
	if err == nil {
		err = supervisor.ErrStopped
	}
	send(nil, err)
}

// ViewBack returns the lines of a member's screen with their history.
func (c *Client) ViewBack(ctx context.Context, name string) (out []string, err error) {
	err = c.ask(ctx, "/v1/viewback", namesIn{[]string{name}}, &out)
	return out, err
}

// View calls each with the lines of a member's screen, see supervisor.View.
func (c *Client) View(ctx context.Context, name string, each func(lines []string)) error {
	body, err := json.Marshal(namesIn{[]string{name}})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	// One that does not answer is noticed until the first frame. From then on no ping wakes anybody
	// while the member writes nothing.
	attended, answered := c.attended(ctx)
	defer answered()
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	forget := context.AfterFunc(attended, func() { stop(context.Cause(attended)) })
	defer forget()
	req, err := http.NewRequestWithContext(reading, http.MethodPost, "http://supervisor"+viewPath, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	c.about(req.Header)
	req.GetBody = nil
	res, err := c.http.Do(req)
	if err != nil {
		return c.gone(reading, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
		return refusal(res.Status, data)
	}
	r := bufio.NewReader(res.Body)
	for {
		frame, err := readFrame(r)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return c.gone(reading, err)
		}
		forget()
		answered()
		out, err := parseAnswer(frame)
		if err != nil {
			return err
		}
		var lines []string
		if err := json.Unmarshal(out, &lines); err != nil {
			return fmt.Errorf("read a frame: %w", err)
		}
		each(lines)
	}
}
