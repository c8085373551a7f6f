package op

import (
	"context"
	"maps"
	"slices"

	"github.com/teamctl/teamctl/tool"
)

// InboxReadIn reads the caller's own mail.
type InboxReadIn struct {
	TeamRef
	WaitSeconds int      `json:"wait_seconds,omitempty" jsonschema:"Where there is none, wait so long for it."`
	Peek        bool     `json:"peek,omitempty" jsonschema:"Leave it unread: it is returned again until it is read without peek."`
	Ack         []string `json:"ack,omitempty" jsonschema:"Mark exactly these as read, by msg_id, before anything else. If left out, what your previous call returned is marked."`
}

func inboxRead(ctx context.Context, s *Session, in InboxReadIn) (tool.InboxOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.InboxOut, error) {
		wait, err := seconds("wait_seconds", in.WaitSeconds)
		if err != nil {
			return tool.InboxOut{}, err
		}
		if err := s.acked(ctx, t, c, in.Ack); err != nil {
			return tool.InboxOut{}, err
		}
		if wait > 0 {
			progress(ctx, 0, 1, "waiting for mail")
		}
		out, err := t.InboxNext(ctx, c, wait)
		if err != nil || in.Peek || len(out.Entries) == 0 {
			return out, err
		}
		if err := t.InboxGiven(ctx, c, out.IDs()); err != nil {
			return tool.InboxOut{}, err
		}
		s.gave(ctx, t, c, out.IDs())
		return out, nil
	})
}

// reader identifies a reader of a mailbox: a client and its member.
type reader struct {
	client  string
	team    string
	session string
}

func readerOf(ctx context.Context, t *tool.Team, c tool.Caller) reader {
	client, _ := ctx.Value(clientKey{}).(string)
	return reader{client, t.Layout.Key, c.Session + " " + c.Name}
}

type clientKey struct{}

// WithClient names the client of a call, by its id, if several share a session: a call of one
// client does not confirm mail returned to another.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// gave records the mail that a call returns. A client that has cancelled the call gets no answer.
func (s *Session) gave(ctx context.Context, t *tool.Team, c tool.Caller, ids []string) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil {
		s.given = map[reader]map[string]bool{}
	}
	r := readerOf(ctx, t, c)
	if s.given[r] == nil {
		s.given[r] = make(map[string]bool, len(ids))
	}
	for _, id := range ids {
		s.given[r][id] = true
	}
}

// acked marks mail as read that the caller confirms: the named ids, or else everything that its
// earlier calls returned, since it calls again.
func (s *Session) acked(ctx context.Context, t *tool.Team, c tool.Caller, ids []string) error {
	r, evidence := readerOf(ctx, t, c), "confirmed by "+c.Name
	s.mu.Lock()
	given := slices.Collect(maps.Keys(s.given[r]))
	s.mu.Unlock()
	if ids == nil {
		ids, evidence = given, "read by "+c.Name+", who called again"
	}
	if len(ids) == 0 {
		return nil
	}
	if err := t.InboxAck(ctx, c, evidence, ids...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range given { // unread mail is returned again
		delete(s.given[r], id)
	}
	if len(s.given[r]) == 0 {
		delete(s.given, r)
	}
	return nil
}

// Received confirms the mail returned by the last InboxRead if the same client will make no
// further call: the answer was written to where the client wanted it.
func (s *Session) Received(ctx context.Context) error {
	s.mu.Lock()
	teams := make([]string, 0, len(s.given))
	for r := range s.given {
		teams = append(teams, r.team)
	}
	s.mu.Unlock()
	for _, key := range teams {
		_, err := on(ctx, s, TeamRef{TeamName: key}, func(t *tool.Team, c tool.Caller) (struct{}, error) {
			return struct{}{}, s.acked(ctx, t, c, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
