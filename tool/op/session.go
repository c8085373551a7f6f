package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Session is one caller's way to the operations: one MCP connection, one command,
// one Go program. It remembers the team that was created in it, nothing else: who
// calls is verified anew with every call, since a member gets a new token with
// every start, and its role and mode may change.
type Session struct {
	Env *tool.Env
	// Who verifies who asks of an open team.
	Who func(ctx context.Context, t *tool.Team) (tool.Caller, error)
	// Outsider is who asks while no team is open.
	Outsider func() tool.Caller
	// AsLead: a client without a member's identity is a program that leads the team
	// (tool.Lead), never the person. Every MCP client is one.
	AsLead bool
	// Place is where the caller's screen is, for panes next to it.
	Place team.Place
	mu    sync.Mutex
	team  string // key of the current team; "" until one is named or created
	// given is the mail that was returned and not confirmed.
	given map[reader]map[string]bool
}

// NewSession returns a session on a team, or on the one that the environment and
// the home directory name where key is empty.
func NewSession(env *tool.Env, key string, who func(context.Context, *tool.Team) (tool.Caller, error), outsider func() tool.Caller) *Session {
	return &Session{Env: env, Who: who, Outsider: outsider, team: key}
}

// Current is the key of the current team, "" if there is none yet.
func (s *Session) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.team
}

func (s *Session) setCurrent(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.team = key
}

// outsider is who asks while no team is open.
func (s *Session) outsider() tool.Caller {
	c := s.Outsider()
	c.Person = c.Person && !s.AsLead
	return c
}

// Open opens the team that is named, or the current one, and says who asks.
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
	c, err := s.Who(ctx, t)
	if err == nil && c.Person && s.AsLead {
		var lead ledger.Member
		lead, err = t.Ledger.Member(ctx, team.LeadName)
		c = tool.Lead(lead)
	}
	if err == nil {
		err = checkMode(ctx, c)
	}
	if err == nil {
		// A call may well do without a supervisor, but not with one that does not answer.
		if awake := t.Awake(ctx); team.ReasonOf(awake) == team.ReasonHung {
			err = awake
		}
	}
	if err != nil {
		return nil, tool.Caller{}, errors.Join(err, t.Close())
	}
	return t, c, nil
}

// on runs f on an open team and closes it again.
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

// Progress is told how a long call stands: done of total, and a text for people.
type Progress func(done, total int, text string)

type progressKey struct{}

// WithProgress lets the calls made with the context tell how they stand. f is
// called from one goroutine at a time.
func WithProgress(ctx context.Context, f Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// progress tells how a long call stands, where somebody wants to know.
func progress(ctx context.Context, done, total int, format string, args ...any) {
	if f, ok := ctx.Value(progressKey{}).(Progress); ok {
		f(done, total, fmt.Sprintf(format, args...))
	}
}

// Call runs an operation on a JSON input and returns its typed output. Errors are
// coded: CodeInvalid (input) before anything is done.
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

// CallJSON is Call with the result as JSON, which fits the output schema.
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

// opKey has the operation that a context is for.
type opKey struct{}

// checkMode refuses what delegate mode does not have: a fixed list of tools, for
// which the table of roles alone is too coarse.
func checkMode(ctx context.Context, c tool.Caller) error {
	o, ok := ctx.Value(opKey{}).(Op)
	if !ok || o.InMode(c.Mode) {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s is in %s mode, which does not have %s", c.Name, c.Mode, o.Name).WithReason(team.ReasonMode).
		WithHint("give the work to another member, or have the mode changed")
}

// delegate is what a lead in delegate mode may call (document 001, section 12).
var delegate = map[string]bool{
	"TeamCreate": true, "TeamDelete": true, "SendMessage": true,
	"TaskCreate": true, "TaskGet": true, "TaskUpdate": true, "TaskList": true,
}

// InMode reports whether a permission mode has the operation. For delegate mode
// that is a list; the others narrow what the gates let through.
func (o Op) InMode(m team.Mode) bool { return m != team.ModeDelegate || delegate[o.Name] }

// Offered is what the caller may call as things stand: by role, by permission mode
// and by the team's settings. Without a team it is what leads to one.
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
	for _, o := range All() {
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

// offeredOutside is what a caller without a team is offered. A person may name any
// team in a call, so it gets everything; an agent that is on no team gets nothing.
func (s *Session) offeredOutside() []Op {
	if c := s.outsider(); !tool.MayOutside(c, tool.OpTeamCreate) {
		return nil
	}
	return All()
}
