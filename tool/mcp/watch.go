package mcp

import (
	"context"
	"maps"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/tool"
)

// lookPause is the minimum time between two looks at a ledger that keeps changing.
const lookPause = 50 * time.Millisecond

// wake makes the watch determine the current team again: a call may have created or deleted it.
func (s *Server) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// watch follows the current team until ctx ends: first, unless that is nil. Without a team it waits
// for a call.
func (s *Server) watch(ctx context.Context, first *tool.Team) {
	defer close(s.done)
	if first != nil {
		s.follow(ctx, first)
		_ = first.Close() // it was only read
	}
	for ctx.Err() == nil {
		t, _, err := s.session.Open(ctx, "")
		if err != nil {
			s.refresh(ctx, nil, map[string]string{}) // the operations that lead to a team
			select {
			case <-ctx.Done():
			case <-s.kick:
			}
			continue
		}
		s.follow(ctx, t)
		_ = t.Close() // it was only read
	}
}

// follow looks at a team after every change, until another one is current.
func (s *Server) follow(ctx context.Context, t *tool.Team) {
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		s.pause(ctx, time.Second) // no watch is available: try again later
		return
	}
	defer stop()
	seen := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
			if key, err := s.session.Env.Resolve(ctx, s.session.Current()); err != nil || key != t.Layout.Key {
				return
			}
			continue
		case <-changes:
		}
		s.refresh(ctx, t, seen)
		s.pause(ctx, lookPause)
	}
}

func (s *Server) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// refresh announces the available tools, and the changes of resources with subscribers. seen has
// their previous contents.
func (s *Server) refresh(ctx context.Context, t *tool.Team, seen map[string]string) {
	if err := s.offer(ctx); err != nil {
		// The identity is no longer valid: no tools are available.
		_ = s.announce(nil)
		return
	}
	if t == nil {
		return
	}
	for _, r := range resources {
		if !s.subscribed(r.uri) {
			delete(seen, r.uri)
			continue
		}
		text, err := s.read(ctx, r)
		if err != nil {
			continue
		}
		before, known := seen[r.uri]
		seen[r.uri] = text
		if known && before == text {
			continue
		}
		_ = s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: r.uri})
	}
}

// subscribed reports whether a client that is still connected wants to know of a resource. No handler
// is called for one that goes, so what it has subscribed to is dropped here.
func (s *Server) subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.subs[uri]) > 0 {
		here := map[*sdk.ServerSession]bool{}
		for ss := range s.sdk.Sessions() {
			here[ss] = true
		}
		maps.DeleteFunc(s.subs[uri], func(ss *sdk.ServerSession, _ bool) bool { return !here[ss] })
	}
	return len(s.subs[uri]) > 0
}

func (s *Server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	if _, ok := findResource(req.Params.URI); !ok {
		return sdk.ResourceNotFoundError(req.Params.URI)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[req.Params.URI] == nil {
		s.subs[req.Params.URI] = map[*sdk.ServerSession]bool{}
	}
	s.subs[req.Params.URI][req.Session] = true
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs[req.Params.URI], req.Session)
	return nil
}
