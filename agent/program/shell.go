package program

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

const (
	shellLimit    = 2 * time.Minute
	shellMost     = time.Hour
	shellOutput   = 50 << 10 // bytes of a result
	ofShell       = "shell"  // in the book of commands
	shellSchema   = `{"type":"object","properties":{"command":{"type":"string","description":"For bash."},"timeout":{"type":"integer","description":"Seconds; 120 if left out, 3600 at most."}},"required":["command"],"additionalProperties":false}`
	shellDescribe = `Run a command with bash in your working directory, without a terminal, and get its output and exit status. Everything that it started is ended with it.`
)

// shell runs commands in the worktree.
func (p *Program) shell(cfg *config.Config) llm.Tool {
	secret := append(cfg.KeyVariables(), team.EnvToken)
	return llm.Tool{
		Tool: model.Tool{Name: "shell", Description: shellDescribe, Schema: json.RawMessage(shellSchema)},
		Run:  func(ctx context.Context, c llm.Call) (llm.Result, error) { return p.runShell(ctx, c, secret) },
	}
}

func (p *Program) runShell(ctx context.Context, c llm.Call, secret []string) (llm.Result, error) {
	read := func() (in struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}, err error) {
		return in, json.Unmarshal(c.Input, &in)
	}
	in, err := read()
	if err != nil || strings.TrimSpace(in.Command) == "" {
		return llm.Result{Failed: true, Text: "give a command: {\"command\": \"...\"}"}, nil
	}
	refusal, err := p.gate(ctx, &c, in.Command)
	if err != nil || refusal != "" {
		return llm.Result{Failed: true, Text: refusal}, err
	}
	if in, err = read(); err != nil { // another one may have been approved
		return llm.Result{Failed: true, Text: "the approved input has no command"}, nil
	}
	limit := shellLimit
	if in.Timeout > 0 {
		limit = min(time.Duration(in.Timeout)*time.Second, shellMost)
	}
	scope, err := p.Env.Commands.Open(ofShell, p.Env.Dir)
	if err != nil {
		return llm.Result{}, err
	}
	var out middle
	ended, err := scope.Run(ctx, run.Cmd{
		Command: in.Command, Dir: p.Env.Dir, Env: p.environ(secret), Stdout: &out, Stderr: &out, Limit: limit, Grace: p.Env.Grace,
	})
	if cerr := scope.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		c.Desk.Line("a process of the command cannot be ended: %v", err)
	}
	if ended.Cut {
		return llm.Result{}, ctx.Err()
	}
	r := llm.Result{Text: out.String(), Failed: !ended.OK(), Note: ended.Why(limit)}
	if !ended.OK() {
		r.Text = strings.TrimRight(r.Text, "\n") + "\n[" + ended.Why(limit) + "]"
	}
	return r, nil
}

// environ is the environment of commands: who runs in it acts for nobody, the team's
// operations are tools.
func (p *Program) environ(secret []string) []string {
	var env []string
	for _, kv := range p.Env.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(secret, name) {
			env = append(env, kv)
		}
	}
	return append(env, "PWD="+p.Env.Dir)
}

// middle keeps the beginning and the end of an output.
type middle struct {
	mu    sync.Mutex
	first []byte
	last  []byte
	lost  int
}

func (m *middle) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(p)
	if room := shellOutput/2 - len(m.first); room > 0 {
		m.first = append(m.first, p[:min(room, len(p))]...)
		p = p[min(room, len(p)):]
	}
	m.last = append(m.last, p...)
	if over := len(m.last) - shellOutput/2; over > 0 {
		m.last, m.lost = append(m.last[:0], m.last[over:]...), m.lost+over
	}
	return n, nil
}

func (m *middle) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := string(m.first)
	if m.lost > 0 {
		s += fmt.Sprintf("\n[%d bytes left out]\n", m.lost)
	}
	return strings.ToValidUTF8(s+string(m.last), "�")
}
