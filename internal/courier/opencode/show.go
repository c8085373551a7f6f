package opencode

import (
	"context"
	"net/http"
	"time"
)

// showAgain are the pauses between looks at the screen, showWithin bounds a request.
var showAgain = []time.Duration{
	500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
}

const showWithin = 10 * time.Second

// show makes the TUI show the session. A TUI that does not listen yet loses the request, and only
// its screen reveals that: the session is selected again as long as the screen shows no
// conversation and no typed text.
func (s *server) show(ctx context.Context, id string) {
	s.selectSession(ctx, id)
	for _, pause := range showAgain {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		if s.f.See == nil {
			return
		}
		switch seen, err := s.f.See(ctx); {
		case err != nil: // the next look may succeed
		case seen.Home:
			s.selectSession(ctx, id)
		case seen.Rule != "":
			return
		}
	}
	if ctx.Err() == nil {
		s.f.Log.Warn("session is not seen on the screen", "member", s.f.Name, "session", id)
	}
}

func (s *server) selectSession(ctx context.Context, id string) {
	within, cancel := context.WithTimeout(ctx, showWithin)
	defer cancel()
	err := s.request(within, http.MethodPost, "/tui/select-session", map[string]string{"sessionID": id}, nil)
	if err != nil && ctx.Err() == nil {
		s.f.Log.Warn("select the session", "member", s.f.Name, "err", err)
	}
}
