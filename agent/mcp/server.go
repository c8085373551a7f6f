package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/team"
)

// server is one server of a set.
type server struct {
	name string
	spec team.MCPServer
	o    *Options

	mu      sync.Mutex // held during its start
	session *sdk.ClientSession
	end     func() // ends its program
	ended   *atomic.Bool
	upAt    time.Time
	closed  bool
	tools   []Tool // last list
	names   map[string]string
	here    map[string]bool // names of its current tools
	stale   *atomic.Bool    // the list has changed since it was read
	pause   time.Duration
	until   time.Time // it is not restarted before this time
	why     error     // why it is down
}

// alive starts the server if it is not up and its pause is over. mu is held.
func (s *server) alive(ctx context.Context) error {
	if s.closed {
		return errors.New("closed")
	}
	if s.session != nil && s.ended.Load() {
		s.down(errors.New("it has ended"))
	}
	if s.session != nil && !s.stale.Load() {
		return nil
	}
	if wait := s.until.Sub(s.o.Now()); s.session == nil && wait > 0 {
		return fmt.Errorf("%w; it is started again in %s at the earliest", s.why, wait.Round(time.Second))
	}
	var err error
	if s.session == nil {
		err = s.start(ctx)
	} else {
		err = s.relist(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		s.down(err)
	default: // an interrupted start is not a failure
		s.stop()
	}
	return err
}

// down records why a server is down. After the first failure it may restart at once; after
// repeated failures the pauses double. mu is held.
func (s *server) down(why error) {
	if s.session != nil && s.o.Now().Sub(s.upAt) >= lastPause {
		s.pause = 0
	}
	s.stop()
	s.until, s.why = s.o.Now().Add(s.pause), why
	s.pause = min(max(2*s.pause, firstPause), lastPause)
}

// stop ends the session and its program. mu is held.
func (s *server) stop() {
	if s.session != nil {
		_ = s.session.Close() // it may have ended already
		s.session = nil
	}
	if s.end != nil {
		s.end()
		s.end = nil
	}
}

func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var transport sdk.Transport
	var end func()
	words := &lastWords{}
	if s.spec.URL != "" {
		transport = &sdk.StreamableClientTransport{Endpoint: s.spec.URL, HTTPClient: &http.Client{
			Transport:     headers{s.spec.Headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
		end = func() {}
	} else {
		p, err := startProgram(s.spec, s.o)
		if err != nil {
			return err
		}
		transport, end = &sdk.IOTransport{Reader: p.out, Writer: p.in}, p.end
		words = p.words
	}
	stale := &atomic.Bool{}
	client := sdk.NewClient(&sdk.Implementation{Name: "teamctl", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { stale.Store(true) },
		Capabilities:           &sdk.ClientCapabilities{},
	})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		end()
		return words.add(fmt.Errorf("connect: %w", err))
	}
	ended := &atomic.Bool{}
	go func() { // exits when stop closes the session
		_ = session.Wait() // the error adds nothing
		ended.Store(true)
	}()
	s.session, s.end, s.ended, s.stale, s.upAt = session, end, ended, stale, s.o.Now()
	return s.relist(ctx)
}

// relist reads the list of tools. mu is held.
func (s *server) relist(ctx context.Context) error {
	s.stale.Store(false)
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var tools []Tool
	n := newNames(s.name)
	for t, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			continue // its schema cannot be sent to a model
		}
		if len(tools) == maxTools {
			break
		}
		tools = append(tools, Tool{
			Tool:     model.Tool{Name: n.give(t.Name), Description: cut(t.Description, maxDescription), Schema: schema},
			Server:   s.name,
			ReadOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint,
		})
	}
	s.tools, s.here = tools, map[string]bool{}
	for _, t := range tools {
		s.here[t.Name] = true
	}
	if s.names == nil {
		s.names = map[string]string{}
	}
	for ours, theirs := range n.theirs { // removed tools stay known, to distinguish them from unknown ones
		s.names[ours] = theirs
	}
	return nil
}

func (s *server) list(ctx context.Context) ([]Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.alive(ctx)
	return s.tools, err
}

func (s *server) original(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	theirs, ok := s.names[name]
	return theirs, ok
}

func (s *server) call(ctx context.Context, name, original string, input json.RawMessage) (Result, error) {
	s.mu.Lock()
	err := s.alive(ctx)
	session, here := s.session, s.here[name]
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case err != nil:
		return Result{Text: fmt.Sprintf("MCP server %s is down: %v.", s.name, err), Failed: true}, nil
	case !here:
		return Result{Text: fmt.Sprintf("Tool %s is gone: MCP server %s no longer has it.", name, s.name), Failed: true}, nil
	}
	out, err := session.CallTool(ctx, &sdk.CallToolParams{Name: original, Arguments: input})
	if err == nil {
		return render(out), nil
	}
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if refused(err) {
		return Result{Text: cut(err.Error(), maxText), Failed: true}, nil
	}
	s.mu.Lock()
	if s.session == session { // otherwise another caller has noticed it first
		s.down(err)
	}
	s.mu.Unlock()
	return Result{Text: fmt.Sprintf("MCP server %s ended during the call (%v). The call may have happened in whole or in part: check before you repeat it.", s.name, err), Failed: true}, nil
}

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stop()
}

// headers adds headers to every request.
type headers struct{ all map[string]string }

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.all {
		r.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}
