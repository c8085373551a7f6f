package fakemodel

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Request is one request for an answer, as it came in.
type Request struct {
	Seq      int       `json:"seq"` // from 1, in order of arrival
	At       time.Time `json:"at"`
	Protocol string    `json:"protocol"` // anthropic, responses, chat, gemini
	Path     string    `json:"path"`
	Stream   bool      `json:"stream,omitempty"`
	Side     bool      `json:"side,omitempty"` // offers no tool: the CLI's own work
	Tools    []string  `json:"tools,omitempty"`
	New      string    `json:"new"`    // what came in since the model's last answer
	Answer   string    `json:"answer"` // in words: "say ...", "call TOOL {...}", "fail 529"
	Body     string    `json:"body,omitempty"`
}

// Requests are the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Arrivals counts in how many requests the text was among what had newly come in:
// more than one is a message that was delivered twice, or a request that was repeated.
func (s *Server) Arrivals(text string) int {
	n := 0
	for _, r := range s.Requests() {
		if !r.Side {
			n += strings.Count(r.New, text)
		}
	}
	return n
}

// Wait returns the first request, past or to come, that ok accepts. Its error is the
// context's.
func (s *Server) Wait(ctx context.Context, ok func(Request) bool) (Request, error) {
	for i := 0; ; {
		s.mu.Lock()
		for ; i < len(s.requests); i++ {
			if ok(s.requests[i]) {
				r := s.requests[i]
				s.mu.Unlock()
				return r, nil
			}
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a request among %d: %w", i, ctx.Err())
		}
	}
}

// record adds a request and wakes those who wait.
func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Seq, r.At = len(s.requests)+1, time.Now()
	s.requests = append(s.requests, r)
	close(s.more)
	s.more = make(chan struct{})
	if s.log != nil {
		s.log(r)
	}
}
