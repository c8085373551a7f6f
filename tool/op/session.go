package op

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Session gives one caller access to the operations: one MCP connection, one command, one Go
// program. It remembers only the team created in it: the caller is verified with every call, since
// a member gets a new token with every start, and its role and mode may change.
type Session struct {
	Env *tool.Env
	// Who verifies the caller against an open team.
	Who func(ctx context.Context, t *tool.Team) (tool.Caller, error)
	// Outsider returns the caller while no team is open.
	Outsider func() tool.Caller
	// AsLead: a client without a member's identity is a program that leads the team (tool.Lead),
	// never the person. That holds for every MCP client.
	AsLead bool
	// Place is the position of the caller's screen, for panes beside it.
	Place team.Place
	mu    sync.Mutex
	team  string // key of the current team; "" until one is named or created
	gone  string // key of the team that was deleted last, while no other is the current one
	// given is returned but unconfirmed mail.
	given map[reader]map[string]bool
}

// NewSession returns a session on a team; an empty key means the team determined by the
// environment and the home directory.
func NewSession(env *tool.Env, key string, who func(context.Context, *tool.Team) (tool.Caller, error), outsider func() tool.Caller) *Session {
	return &Session{Env: env, Who: who, Outsider: outsider, team: key}
}

// Current returns the key of the current team, "" if there is none yet.
func (s *Session) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.team
}

func (s *Session) setCurrent(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.team = key
	if key != "" {
		s.gone = ""
	}
}

func (s *Session) setDeleted(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.team, s.gone = "", key
}

// deletes is the team that a delete is about where none is named: the current one, or the one that
// was deleted before.
func (s *Session) deletes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.team, s.gone)
}

// outsider returns the caller while no team is open.
func (s *Session) outsider() tool.Caller {
	c := s.Outsider()
	c.Person = c.Person && !s.AsLead
	return c
}

// Open opens the named team, or the current one, and returns the caller.
func (s *Session) Open(ctx context.Context, name string) (*tool.Team, tool.Caller, error) {
	if name == "" {
		name = s.Current()
	}
	key, err := s.Env.Resolve(ctx, name)
	if err != nil {
		return nil, tool.Caller{}, err
	}
	t, err := s.Env.Open(ctx, key)
	if err != nil {
		return nil, tool.Caller{}, err
	}
	c, err := s.caller(ctx, t)
	if err == nil {
		// A call may work without a supervisor, but not with one that does not answer.
		if awake := t.Awake(ctx); team.ReasonOf(awake) == team.ReasonHung {
			err = awake
		}
	}
	if err != nil {
		return nil, tool.Caller{}, errors.Join(err, t.Close())
	}
	return t, c, nil
}

// caller verifies who asks of an open team, and that the mode of the caller has the operation.
func (s *Session) caller(ctx context.Context, t *tool.Team) (tool.Caller, error) {
	c, err := s.Who(ctx, t)
	if err == nil && c.Person && s.AsLead {
		var lead ledger.Member
		lead, err = t.Ledger.Member(ctx, team.LeadName)
		c = tool.Lead(lead)
	}
	if err == nil {
		err = checkMode(ctx, c)
	}
	return c, err
}

// on opens a team, runs f on it, and closes it.
func on[Out any](ctx context.Context, s *Session, ref TeamRef, f func(*tool.Team, tool.Caller) (Out, error)) (out Out, err error) {
	t, c, err := s.Open(ctx, ref.TeamName)
	if err != nil {
		return out, err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	return f(t, c)
}

// Progress reports the progress of a long call: done of total, and a text for people.
type Progress func(done, total int, text string)

type progressKey struct{}

// WithProgress makes calls with the context report progress to f, which is called from one
// goroutine at a time.
func WithProgress(ctx context.Context, f Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// progress reports the progress of a long call, if requested.
func progress(ctx context.Context, done, total int, format string, args ...any) {
	if f, ok := ctx.Value(progressKey{}).(Progress); ok {
		f(done, total, fmt.Sprintf(format, args...))
	}
}

// Call runs an operation on a JSON input and returns its typed output. Errors are coded:
// CodeInvalid (input) if nothing was done.
func (s *Session) Call(ctx context.Context, name string, input json.RawMessage) (any, error) {
	o, err := Find(name)
	if err != nil {
		return nil, err
	}
	in, err := o.Decode(input)
	if err != nil {
		return nil, err
	}
	out, err := o.run(context.WithValue(ctx, opKey{}, o), s, in)
	if err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil && team.CodeOf(err) == team.CodeInternal {
		err = team.Errorf(team.CodeTimeout, "%s was cancelled: %w", name, err).WithReason(team.ReasonCancelled)
	}
	return out, err
}

// CallJSON is Call with the result as JSON, which matches the output schema.
func (s *Session) CallJSON(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	out, err := s.Call(ctx, name, input)
	if err != nil {
		return nil, err
	}
	o, err := Find(name)
	if err != nil {
		return nil, err
	}
	return o.Encode(out)
}

// opKey is the context key of the operation.
type opKey struct{}

// checkMode refuses operations outside the fixed list of delegate mode, for which the table of
// roles alone is too coarse.
func checkMode(ctx context.Context, c tool.Caller) error {
	o, ok := ctx.Value(opKey{}).(Op)
	if !ok || o.InMode(c.Mode) {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s is in %s mode, which does not have %s", c.Name, c.Mode, o.Name).WithReason(team.ReasonMode).
		WithHint("assign the work to another member, or change the mode")
}

// delegate lists the operations for a lead in delegate mode.
var delegate = map[string]bool{
	"TeamCreate": true, "TeamDelete": true, "SendMessage": true,
	"TaskCreate": true, "TaskGet": true, "TaskUpdate": true, "TaskList": true,
}

// InMode reports whether a permission mode permits the operation. Delegate mode has a list; the
// other modes restrict the gates.
func (o Op) InMode(m team.Mode) bool { return m != team.ModeDelegate || delegate[o.Name] }

// Offered returns the operations available to the caller: by role, permission mode and the team's
// settings. Without a team these are the ones that lead to a team.
func (s *Session) Offered(ctx context.Context) ([]Op, error) {
	t, c, err := s.Open(ctx, "")
	switch team.ReasonOf(err) {
	case "team_not_found", "team_ambiguous":
		return s.offeredOutside(), nil
	}
	if err != nil {
		return nil, err
	}
	list, err := offered(ctx, t, c)
	return list, errors.Join(err, t.Close())
}

func offered(ctx context.Context, t *tool.Team, c tool.Caller) ([]Op, error) {
	var list []Op
	for _, o := range all() {
		if !o.InMode(c.Mode) {
			continue
		}
		ok := len(o.Gates) == 0
		for _, g := range o.Gates {
			may, err := t.May(ctx, c, g)
			if err != nil {
				return nil, err
			}
			ok = ok || may
		}
		if ok {
			list = append(list, o)
		}
	}
	return list, nil
}

// offeredOutside returns the operations available to a caller without a team. A person may name
// any team in a call, and therefore gets all; an agent without a team gets none.
func (s *Session) offeredOutside() []Op {
	if c := s.outsider(); !tool.MayOutside(c, tool.OpTeamCreate) {
		return nil
	}
	return All()
}
