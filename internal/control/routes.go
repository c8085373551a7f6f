package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The bodies of requests that are not a supervisor type of their own.
type (
	namesIn   struct{ Names []string }
	captureIn struct {
		Name       string
		Scrollback int
	}
	typeIn struct {
		Name, Text string
		Enter      bool
	}
	hideIn struct {
		Name   string
		Hidden bool
	}
	pauseIn struct {
		Names []string
		On    bool
	}
	renameIn struct{ Session, Name string }
	carryIn  struct{ Approval int64 }
	quitIn   struct{ CloseTeam bool }
	none     struct{}
)

// routes is everything that the socket answers. Each takes the body's JSON.
var routes = map[string]func(ctx context.Context, s *server, body []byte) (any, error){
	"/v1/write": route(func(ctx context.Context, s *server, op ledger.Op) (json.RawMessage, error) {
		return s.writer.Write(ctx, op)
	}),
	"/v1/spawn": route(func(ctx context.Context, s *server, in team.SpawnRequest) (ledger.SpawnResult, error) {
		return s.sup.Spawn(ctx, in)
	}),
	"/v1/stop": route(func(ctx context.Context, s *server, in team.StopRequest) (stopOut, error) {
		out, err := s.sup.StopMembers(ctx, in)
		return stopOut{out, errorOf(err)}, nil
	}),
	"/v1/start": route(func(ctx context.Context, s *server, in namesIn) ([]ledger.Member, error) {
		return s.sup.StartMembers(ctx, in.Names)
	}),
	"/v1/restart": route(func(ctx context.Context, s *server, in namesIn) ([]ledger.Member, error) {
		return s.sup.RestartMembers(ctx, in.Names)
	}),
	"/v1/rename": route(func(ctx context.Context, s *server, in renameIn) (ledger.Member, error) {
		return s.sup.RenameMember(ctx, in.Session, in.Name)
	}),
	"/v1/capture": route(func(ctx context.Context, s *server, in captureIn) (string, error) {
		return s.sup.Capture(ctx, in.Name, in.Scrollback)
	}),
	"/v1/viewback": route(func(ctx context.Context, s *server, in namesIn) ([]string, error) {
		return s.sup.ViewBack(ctx, one(in.Names))
	}),
	"/v1/type": route(func(ctx context.Context, s *server, in typeIn) (none, error) {
		return none{}, s.sup.TypeText(ctx, in.Name, in.Text, in.Enter)
	}),
	"/v1/hide": route(func(ctx context.Context, s *server, in hideIn) (none, error) {
		return none{}, s.sup.Hide(ctx, in.Name, in.Hidden)
	}),
	"/v1/status": route(func(ctx context.Context, s *server, _ none) (ledger.SupervisorStatus, error) {
		return s.sup.Status(ctx)
	}),
	"/v1/pause": route(func(ctx context.Context, s *server, in pauseIn) ([]ledger.Member, error) {
		return s.sup.PauseMembers(ctx, in.Names, in.On)
	}),
	"/v1/recover": route(func(ctx context.Context, s *server, in namesIn) ([]team.Recovered, error) {
		return s.sup.RecoverMembers(ctx, in.Names)
	}),
	"/v1/debug": route(func(ctx context.Context, s *server, _ none) (team.Debug, error) {
		return s.sup.Debug(ctx)
	}),
	"/v1/explain": route(func(ctx context.Context, s *server, in namesIn) (team.Report, error) {
		return s.sup.Explain(ctx, one(in.Names))
	}),
	"/v1/interrupt": route(func(ctx context.Context, s *server, in namesIn) (none, error) {
		return none{}, s.sup.InterruptMember(ctx, one(in.Names))
	}),
	"/v1/carryout": route(func(ctx context.Context, s *server, in carryIn) (ledger.Outcome, error) {
		return s.sup.CarryOut(ctx, in.Approval)
	}),
	"/v1/quit": route(func(ctx context.Context, s *server, in quitIn) (none, error) {
		return none{}, s.sup.Quit(ctx, in.CloseTeam)
	}),
}

// one returns the name of a request about one member; "" if there is none.
func one(names []string) string {
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// stopOut carries results and error both: some members may have stopped.
type stopOut struct {
	Stopped []team.Stopped `json:"stopped"`
	Error   *team.Error    `json:"error,omitempty"`
}

func route[In, Out any](f func(context.Context, *server, In) (Out, error)) func(context.Context, *server, []byte) (any, error) {
	return func(ctx context.Context, s *server, body []byte) (any, error) {
		var in In
		if len(body) > 0 {
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, team.Errorf(team.CodeInvalid, "read request: %w", err)
			}
		}
		return f(ctx, s, in)
	}
}

// errorOf is err as it travels; nil stays nil.
func errorOf(err error) *team.Error {
	if err == nil {
		return nil
	}
	return &team.Error{Code: team.CodeOf(err), Msg: err.Error(), Reason: team.ReasonOf(err), Hint: team.HintOf(err)}
}

// statusOf is the HTTP status of a code, for people with curl; clients read the code.
func statusOf(code team.Code) int {
	switch code {
	case team.CodeInvalid:
		return 400
	case team.CodeDenied:
		return 403
	case team.CodeNotFound:
		return 404
	case team.CodeConflict:
		return 409
	case team.CodeLimit:
		return 429
	case team.CodeUnavailable:
		return 503
	case team.CodeTimeout:
		return 504
	default:
		return 500
	}
}

// dialTimeout bounds connecting to a socket on this machine.
const dialTimeout = 5 * time.Second
