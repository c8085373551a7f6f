package mcp

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 5 * time.Minute

// rig is a team without processes, in a home of its own.
type rig struct {
	*testing.T
	env *tool.Env
}

func newRig(t *testing.T) rig {
	t.Helper()
	return rig{t, &tool.Env{Home: team.Home{Dir: t.TempDir()}}}
}

// create makes the team demo.
func (r rig) create() rig {
	r.Helper()
	if _, err := r.env.TeamCreate(r.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		r.Fatal(err)
	}
	return r
}

// team runs f on the open team.
func (r rig) team(f func(t *tool.Team) error) {
	r.Helper()
	t, err := r.env.Open(r.Context(), "demo")
	if err == nil {
		err = f(t)
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		r.Fatal(err)
	}
}

// join puts a member on the roster and returns who it says it is, and its token.
func (r rig) join(name string, role team.Role) (id, token string) {
	r.Helper()
	r.team(func(t *tool.Team) error {
		j, err := t.Join(r.Context(), tool.Person(), tool.JoinIn{Name: name, Role: string(role)})
		id = j.Member.AgentID
		for _, kv := range j.Env {
			if len(kv) > len(team.EnvToken) && kv[:len(team.EnvToken)] == team.EnvToken {
				token = kv[len(team.EnvToken)+1:]
			}
		}
		return err
	})
	return id, token
}

// person is a session of the person that leads, as an MCP client has it.
func (r rig) person() *op.Session {
	s := op.NewSession(r.env, "", func(context.Context, *tool.Team) (tool.Caller, error) { return tool.Person(), nil }, tool.Person)
	s.AsLead = true
	return s
}

// member is a session of a member.
func (r rig) member(id, token string) *op.Session {
	return op.NewSession(r.env, "demo",
		func(ctx context.Context, t *tool.Team) (tool.Caller, error) { return t.Identify(ctx, id, token) },
		func() tool.Caller { return tool.Caller{Name: id, Role: team.RoleExecutor} })
}

// heard is what a client was told.
type heard struct {
	tools, resources, progress, logs chan string
}

// client connects the SDK's client to a server of the session, in the newest
// revision of the protocol or in the one named.
func (r rig) client(s *op.Session, version ...string) (*sdk.ClientSession, *heard) {
	r.Helper()
	srv, err := New(r.Context(), s, "v0")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(srv.Close)
	h := &heard{make(chan string, 100), make(chan string, 100), make(chan string, 100), make(chan string, 100)}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "v0"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { h.tools <- "changed" },
		ResourceUpdatedHandler: func(_ context.Context, q *sdk.ResourceUpdatedNotificationRequest) { h.resources <- q.Params.URI },
		ProgressNotificationHandler: func(_ context.Context, q *sdk.ProgressNotificationClientRequest) {
			h.progress <- q.Params.Message
		},
		LoggingMessageHandler: func(_ context.Context, q *sdk.LoggingMessageRequest) { //nolint:staticcheck // as in server.go
			b, _ := json.Marshal(q.Params.Data)
			h.logs <- string(b)
		},
	})
	here, there := sdk.NewInMemoryTransports()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	go func() { ended <- srv.Run(ctx, here) }()
	cs, err := c.Connect(r.Context(), there, &sdk.ClientSessionOptions{ProtocolVersion: append(version, "")[0]})
	if err != nil {
		cancel()
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = cs.Close()
		cancel()
		<-ended
	})
	return cs, h
}

// call calls a tool that works and reads its result into out.
func (r rig) call(cs *sdk.ClientSession, name string, in map[string]any, out any) {
	r.Helper()
	res, err := cs.CallTool(r.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	if res.IsError {
		r.Fatalf("%s: %s", name, res.Content[0].(*sdk.TextContent).Text)
	}
	o, err := op.Find(name)
	if err != nil {
		r.Fatal(err)
	}
	schema, err := o.OutputSchema()
	if err != nil {
		r.Fatal(err)
	}
	if fits, err := schema.Resolve(nil); err != nil {
		r.Fatal(err)
	} else if err := fits.Validate(res.StructuredContent); err != nil {
		r.Errorf("the result of %s does not fit its schema: %v", name, err)
	}
	if out == nil {
		return
	}
	b, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
}

// refused calls a tool that refuses.
func (r rig) refused(cs *sdk.ClientSession, name string, in map[string]any) Failure {
	r.Helper()
	res, err := cs.CallTool(r.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	if !res.IsError {
		r.Fatalf("%s was not refused: %v", name, res.StructuredContent)
	}
	var f Failure
	if err := json.Unmarshal([]byte(res.Content[0].(*sdk.TextContent).Text), &f); err != nil {
		r.Fatal(err)
	}
	return f
}

// names are the tools that a client sees.
func (r rig) names(cs *sdk.ClientSession) map[string]bool {
	r.Helper()
	res, err := cs.ListTools(r.Context(), nil)
	if err != nil {
		r.Fatal(err)
	}
	names := map[string]bool{}
	for _, t := range res.Tools {
		names[t.Name] = true
	}
	return names
}

// hear waits for a word.
func (r rig) hear(ch chan string, want string) {
	r.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case got := <-ch:
			if want == "" || got == want {
				return
			}
		case <-timeout.C:
			r.Fatalf("nobody said %q", want)
		}
	}
}

// told changes something until a subscriber hears of it: under the newer protocol
// Subscribe returns before the server has taken it.
func (r rig) told(ch chan string, want string, change func()) {
	r.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		change()
		again := time.NewTimer(time.Second)
		for waits := true; waits; {
			select {
			case got := <-ch:
				if got == want {
					again.Stop()
					return
				}
			case <-again.C:
				waits = false
			case <-timeout.C:
				r.Fatalf("nobody said %q", want)
			}
		}
	}
}

// setMode changes a mode as the person at a shell.
func (r rig) setMode(name string, m team.Mode) {
	r.Helper()
	r.team(func(t *tool.Team) error {
		_, err := t.SetMode(r.Context(), tool.Person(), name, m)
		return err
	})
}

// tasks puts tasks on the board.
func (r rig) tasks(subjects ...string) {
	r.Helper()
	r.team(func(t *tool.Team) error {
		var in tool.TaskAddIn
		for _, s := range subjects {
			in.Tasks = append(in.Tasks, ledger.NewTask{Subject: s})
		}
		_, err := t.TaskAdd(r.Context(), tool.Person(), in)
		return err
	})
}
