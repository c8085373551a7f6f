package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/team"
)

const (
	startTime  = 30 * time.Second // for a server to start and list its tools
	firstPause = time.Second
	lastPause  = time.Minute
)

// Options configure the servers of a set.
type Options struct {
	Servers map[string]team.MCPServer // by name; each is valid
	Dir     string                    // working directory of programs
	Env     []string                  // environment of programs, before Withhold
	// Withhold names variables that programs do not get: keys of providers, the member's token.
	Withhold []string
	// Enter is called on the thread that starts a program, to confine it; may be nil.
	Enter func() error
	// Stderr receives the standard error of programs; nil discards it, except for the end of a
	// failed start.
	Stderr io.Writer
	// Now is the clock of pauses; nil is time.Now.
	Now func() time.Time
}

// Tool is one tool of a server.
type Tool struct {
	model.Tool
	Server   string
	ReadOnly bool // according to the server
}

// Result is the result of a call.
type Result struct {
	Text   string
	Failed bool
}

// Set is all servers of one agent. It is safe for concurrent use.
type Set struct {
	servers []*server // sorted by name
}

// New returns a set and starts nothing.
func New(o Options) *Set {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{}
	for _, name := range slices.Sorted(maps.Keys(o.Servers)) {
		s.servers = append(s.servers, &server{name: name, spec: o.Servers[name], o: &o})
	}
	return s
}

// Tools returns the tools of all servers, sorted by name, and starts servers that are not up,
// concurrently. A server that does not start is named in troubles, and its last known tools are
// listed.
func (s *Set) Tools(ctx context.Context) (tools []Tool, troubles []string) {
	all := make([][]Tool, len(s.servers))
	why := make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, srv := range s.servers {
		wg.Go(func() { all[i], why[i] = srv.list(ctx) })
	}
	wg.Wait()
	for i, srv := range s.servers {
		tools = append(tools, all[i]...)
		if why[i] != nil {
			troubles = append(troubles, fmt.Sprintf("MCP server %s: %v", srv.name, why[i]))
		}
	}
	slices.SortFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools, troubles
}

// Call calls a tool by the name returned by Tools. Failures are failed results; an error is the
// context's.
func (s *Set) Call(ctx context.Context, name string, input json.RawMessage) (Result, error) {
	for _, srv := range s.servers {
		if original, ok := srv.original(name); ok {
			return srv.call(ctx, name, original, input)
		}
	}
	return Result{Text: fmt.Sprintf("There is no tool %s.", name), Failed: true}, nil
}

// Close ends all servers.
func (s *Set) Close() {
	var wg sync.WaitGroup
	for _, srv := range s.servers {
		wg.Go(srv.close)
	}
	wg.Wait()
}
