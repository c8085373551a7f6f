package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// SetModels is the setting with the models that agents may choose by themselves.
const SetModels = "models"

// withdrawWithin bounds withdrawing a request that is no longer needed.
const withdrawWithin = 2 * time.Second

// pauseKey is the context key of a call's Pause.
type pauseKey struct{}

// Pause reports what a call waits for, and releases meanwhile what the call holds; resume ends
// both.
type Pause func(ctx context.Context, what team.WaitFor, why string) (resume func(context.Context) error, err error)

// WithPause makes calls with the context use p while they wait for people or for other sessions.
func WithPause(ctx context.Context, p Pause) context.Context {
	return context.WithValue(ctx, pauseKey{}, p)
}

// paused calls wait, within a Pause if the call has one.
func paused(ctx context.Context, what team.WaitFor, why string, wait func() error) error {
	p, ok := ctx.Value(pauseKey{}).(Pause)
	if !ok {
		return wait()
	}
	resume, err := p(ctx, what, why)
	if err != nil {
		return err
	}
	return errors.Join(wait(), resume(ctx))
}

// OwnSession returns the key of the session from which the call comes; "" for none.
func (c Caller) OwnSession() string { return cmp.Or(c.Conversation, c.Session) }

// bound returns the spec that limits what the caller may grant to itself or others; ok is false if
// only the role limits it: for a person, and for a lead that is a program of its own.
func (t *Team) bound(ctx context.Context, c Caller) (own ledger.Session, spec team.AgentSpec, ok bool, err error) {
	if c.Person {
		return own, spec, false, nil
	}
	own, err = t.Ledger.Session(ctx, c.OwnSession())
	if team.IsCode(err, team.CodeNotFound) {
		if c.Role == team.RoleLeader || c.Role == team.RoleOperator {
			return own, spec, false, nil
		}
		// The rights of a foreign agent are unknown, so it has none to grant.
		none := team.Filter{Allow: []string{}}
		return own, team.AgentSpec{Policy: team.SpecPolicy{Tools: none, Skills: none}}, true, nil
	}
	if err != nil {
		return own, spec, false, err
	}
	known, err := t.Ledger.Spec(ctx, own.ActiveAgentID)
	if team.IsCode(err, team.CodeNotFound) && own.ActiveAgentID == born[0].ID {
		known, err = ledger.Spec{}, nil
	}
	return own, known.AgentSpec, true, err
}

// beyond returns what a spec allows in a session of a kind that the caller does not have; "" for
// nothing.
func (t *Team) beyond(ctx context.Context, c Caller, spec team.AgentSpec, in team.SessionKind) (string, error) {
	own, mine, ok, err := t.bound(ctx, c)
	if err != nil || !ok {
		return "", err
	}
	kind := team.SessionTeammate
	if own.Key != "" {
		k, err := team.ParseSessionKey(own.Key)
		if err != nil {
			return "", err
		}
		kind = k.Kind
	}
	if name, more := spec.Policy.Tools.In(in).Beyond(mine.Policy.Tools.In(kind)); more {
		return "the tool " + name, nil
	}
	if name, more := spec.Policy.Skills.Beyond(mine.Policy.Skills); more {
		return "the skill " + name, nil
	}
	return t.beyondModels(ctx, c, spec.Defaults.Model)
}

// beyondModels returns the model if it is not one that agents may choose by themselves.
func (t *Team) beyondModels(ctx context.Context, c Caller, m team.SpecModel) (string, error) {
	if c.Person || m.Model == "" {
		return "", nil
	}
	allowed, err := t.setting(ctx, SetModels)
	if err != nil || allowed == "" {
		return "", err
	}
	if ref := m.Provider + "/" + m.Model; !(team.Filter{Allow: fields(allowed)}).Names(ref) {
		return "the model " + ref, nil
	}
	return "", nil
}

// entitle permits a call that grants nothing; otherwise it requests approval and waits for the
// answer.
func (t *Team) entitle(ctx context.Context, c Caller, op, more string, input any) error {
	if more == "" {
		return nil
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode the input of %s: %w", op, err)
	}
	what := fmt.Sprintf("%s gives %s, which %s does not have", op, more, c.Name)
	asked, err := t.AskPermission(ctx, c, PermissionIn{ToolName: op, Description: what, Input: raw, FixedInput: true})
	if err != nil {
		return err
	}
	err = paused(ctx, team.WaitPermission, what, func() error {
		_, err := t.AwaitApproval(ctx, asked.ID, 0)
		return err
	})
	if ctx.Err() != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
		defer cancel()
		err = errors.Join(err, t.Ledger.Withdraw(after, asked.ID, asked.Name, "no longer needed"))
	}
	return err
}

// mine reports whether a session is the caller's own, or a descendant of it.
func (t *Team) mine(ctx context.Context, c Caller, s ledger.Session) (bool, error) {
	own := c.OwnSession()
	if own == "" {
		return false, nil
	}
	for {
		if s.Key == own {
			return true, nil
		}
		if s.Owner == "" {
			return false, nil
		}
		up, err := t.Ledger.Session(ctx, s.Owner)
		if err != nil {
			return false, err
		}
		s = up
	}
}

// mayChange refuses changes to sessions that the caller may not change: an agent may change its
// own session and its descendants, a leader or a person all. own reports whether the session is
// the caller's.
func (t *Team) mayChange(ctx context.Context, c Caller, s ledger.Session) (own bool, err error) {
	if t.Elsewhere != nil {
		return false, t.Elsewhere
	}
	if c.Person {
		return false, nil
	}
	if own, err = t.mine(ctx, c, s); err != nil {
		return false, err
	}
	if own {
		return true, nil
	}
	return false, t.may(ctx, c, OpRule)
}

// fields splits a setting that is a list, separated by blanks or commas.
func fields(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
}
