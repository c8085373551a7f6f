package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/model"
)

// IdleLimit is the default of an Endpoint's maximum silence.
const IdleLimit = 120 * time.Second

// maxRefusal is the maximum size of an error body that is read.
const maxRefusal = 64 << 10

// Endpoint describes how to reach a provider. Its fields do not change once it is in use.
type Endpoint struct {
	Name    string // of the provider, for errors
	BaseURL string // without a slash at the end
	Headers map[string]string
	// Authorize sets the headers with the key. It is called for every request, so that no key is
	// stored; nil sends none.
	Authorize func(ctx context.Context, h http.Header) error
	Idle      time.Duration // 0 means IdleLimit
	Client    *http.Client  // nil: one shared by the package
	Now       func() time.Time
	// AfterFunc is time.AfterFunc for the silence timer of a request, or nil.
	AfterFunc func(time.Duration, func()) *time.Timer
}

func (e Endpoint) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// client is shared, and with it its connections. A redirect is returned as it is, since following
// one could send the key to another host.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// errIdle ends a request whose provider is silent.
var errIdle = errors.New("no data from the provider")

// Post requests an answer. The stream must be closed. Errors are *model.Error or the context's.
func (e Endpoint) Post(ctx context.Context, path string, body []byte) (*Stream, error) {
	return e.do(ctx, http.MethodPost, path, body, "text/event-stream")
}

// Get reads a whole answer.
func (e Endpoint) Get(ctx context.Context, path string) ([]byte, error) {
	s, err := e.do(ctx, http.MethodGet, path, nil, "application/json")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Whole()
}

func (e Endpoint) do(ctx context.Context, method, path string, body []byte, accept string) (*Stream, error) {
	inner, cancel := context.WithCancelCause(ctx)
	idle := e.Idle
	if idle <= 0 {
		idle = IdleLimit
	}
	// The silence timer starts here: a server that accepts the connection and sends nothing counts
	// as silent.
	after := e.AfterFunc
	if after == nil {
		after = time.AfterFunc
	}
	clock := after(idle, func() { cancel(errIdle) })
	s := &Stream{e: e, ctx: ctx, inner: inner, cancel: cancel, clock: clock, idle: idle}
	req, err := http.NewRequestWithContext(inner, method, e.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		s.Close()
		return nil, &model.Error{Kind: model.Refused, Provider: e.Name, Err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "teamctl")
	for k, v := range e.Headers {
		req.Header.Set(k, v)
	}
	if e.Authorize != nil {
		if err := e.Authorize(inner, req.Header); err != nil {
			s.Close()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &model.Error{Kind: model.Login, Provider: e.Name, Err: err}
		}
	}
	c := e.Client
	if c == nil {
		c = client
	}
	resp, err := c.Do(req)
	if err != nil {
		err = s.failed(err, model.Temporary)
		s.Close()
		return nil, err
	}
	clock.Stop()
	s.body = resp.Body
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(s, maxRefusal)) // a partial body is enough
		s.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r := ParseRefusal(text)
		if r.Text == "" {
			r.Text = http.StatusText(resp.StatusCode)
		}
		r.Status, r.Headers = resp.StatusCode, resp.Header
		return nil, e.Error(r)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	s.Plain = strings.HasSuffix(kind, "json")
	return s, nil
}

// failed returns the error of a request or body that was interrupted.
func (s *Stream) failed(err error, kind model.Kind) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if errors.Is(context.Cause(s.inner), errIdle) {
		return &model.Error{Kind: model.Cut, Provider: s.e.Name, Err: fmt.Errorf("%w for %s", errIdle, s.idle)}
	}
	return &model.Error{Kind: kind, Provider: s.e.Name, Err: err}
}
