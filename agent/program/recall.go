package program

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/ledger/memory"
	"github.com/teamctl/teamctl/team"
)

// withMemory calls fn with the memory of the home directory. It is open only during the call,
// since most agents never use it.
func (p *Program) withMemory(ctx context.Context, fn func(*memory.Store) error) (err error) {
	s, err := memory.Open(ctx, p.Team.Layout.Home.Memory())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return fn(s)
}

// recall returns memory entries related to the newest text of a session; "" if there are none, or
// if the agent's spec disables this.
func (p *Program) recall(ctx context.Context, s ledger.Session, spec team.AgentSpec) (text string, err error) {
	policy := spec.Context
	key, err := team.ParseSessionKey(s.Key)
	if err != nil {
		return "", err
	}
	on := remembers(key.Kind, policy)
	if _, serr := os.Stat(p.Team.Layout.Home.Memory()); !on || errors.Is(serr, fs.ErrNotExist) {
		return "", nil
	}
	newest, ok, err := p.Team.Ledger.NewestEntry(ctx, s.Key, ledger.EntryUser)
	if err != nil || !ok {
		return "", err
	}
	err = p.withMemory(ctx, func(m *memory.Store) error {
		text, err = m.Recall(ctx, p.asks(s, spec, newest.Content), cmp.Or(policy.MemoryBudget, team.DefaultMemoryBudget))
		return err
	})
	return text, err
}

// remembers reports whether a session of that kind has a memory: children have none unless
// their spec says so.
func remembers(kind team.SessionKind, policy team.ContextPolicy) bool {
	if policy.Memory != nil {
		return *policy.Memory
	}
	return kind != team.SessionSubagent && kind != team.SessionCron
}

// asks returns a memory query of a session.
func (p *Program) asks(s ledger.Session, spec team.AgentSpec, text string) memory.Query {
	return memory.Query{Text: text, Session: s.Key, Team: p.Team.Layout.Key, Agent: p.Member.Name, Keys: spec.Context.MemoryFilter}
}

// memoryTools returns the memory tools of a session: it can change only entries of its own member.
// A child without a memory has none.
func (p *Program) memoryTools(s ledger.Session, spec team.AgentSpec) []tools.Tool {
	if s.Owner != "" && !remembers(team.SessionSubagent, spec.Context) {
		return nil
	}
	own := p.Team.Layout.Key + "/" + p.Member.Name + "/"
	type saveIn struct {
		Name string   `json:"name" jsonschema:"what it is found by; an entry of yours with this name is replaced"`
		Text string   `json:"text" jsonschema:"what is to be remembered"`
		Tags []string `json:"tags,omitempty" jsonschema:"words by which it is found as well"`
	}
	type searchIn struct {
		Text  string `json:"text" jsonschema:"words; an entry needs one of them"`
		Limit int    `json:"limit,omitempty" jsonschema:"at most this many; 10 where it is left out"`
	}
	type forgetIn struct {
		Name string `json:"name" jsonschema:"the name of an entry of yours"`
	}
	return []tools.Tool{
		tools.Typed("memory_save", "Remember something beyond this conversation: what you will need again in other sessions. Never a password or key.", tools.Own, false, nil,
			func(ctx context.Context, _ tools.Call, in saveIn) (tools.Out, error) {
				return p.memorize(ctx, func(m *memory.Store) (string, error) {
					e, err := m.Save(ctx, memory.Entry{Key: own + strings.TrimPrefix(in.Name, own), Text: p.secrets.Hide(in.Text), Tags: in.Tags, Session: s.Key})
					return "Saved as " + e.Key + ".", err
				})
			}),
		tools.Typed("memory_search", "Find what you and others have remembered, the best match first.", tools.Read, true, nil,
			func(ctx context.Context, _ tools.Call, in searchIn) (tools.Out, error) {
				return p.memorize(ctx, func(m *memory.Store) (string, error) {
					q := p.asks(s, spec, in.Text)
					q.Limit = in.Limit
					found, err := m.Search(ctx, q)
					if err == nil && len(found) == 0 {
						return "Nothing is remembered about that.", nil
					}
					var out strings.Builder
					for _, e := range found {
						out.WriteString("- " + e.Key + ": " + e.Text + "\n")
					}
					return out.String(), err
				})
			}),
		tools.Typed("memory_forget", "Remove an entry of yours from memory.", tools.Own, false, nil,
			func(ctx context.Context, _ tools.Call, in forgetIn) (tools.Out, error) {
				return p.memorize(ctx, func(m *memory.Store) (string, error) {
					key := own + strings.TrimPrefix(in.Name, own)
					return "Forgotten: " + key + ".", m.Forget(ctx, key)
				})
			}),
	}
}

// memorize carries out a memory call; mistakes of the model are reported to the model.
func (p *Program) memorize(ctx context.Context, fn func(*memory.Store) (string, error)) (out tools.Out, err error) {
	err = p.withMemory(ctx, func(m *memory.Store) (err error) {
		out.Text, err = fn(m)
		return err
	})
	if team.IsCode(err, team.CodeInvalid) || team.IsCode(err, team.CodeNotFound) {
		r := refused(err)
		return tools.Out{Text: r.Text, Failed: true}, nil
	}
	return out, err
}
