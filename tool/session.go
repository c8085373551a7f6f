package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Session finds a session of the built-in agent by its key, or by the name of the member whose
// main session it is.
func (t *Team) Session(ctx context.Context, who string) (ledger.Session, error) {
	if who == "" {
		return ledger.Session{}, team.Errorf(team.CodeInvalid, "session_key must not be empty").WithReason(team.ReasonInput).WithHint("teamctl session ls")
	}
	key := who
	if _, err := team.ParseSessionKey(who); err != nil {
		m, err := t.Member(ctx, who)
		if err != nil {
			return ledger.Session{}, err
		}
		if !team.KindOf(m.Spec.Agent).Sessions {
			return ledger.Session{}, team.Errorf(team.CodeConflict, "%s keeps its conversation itself: it is of kind %s", m.Name, m.Spec.Agent).
				WithReason(team.ReasonNoSession).WithHint("teamctl attach " + m.Name + " shows it; teamctl send " + m.Name + " TEXT")
		}
		key = m.SessionKey
	}
	s, err := t.Ledger.Session(ctx, key)
	if team.ReasonOf(err) != team.ReasonSessionNotFound {
		return s, err
	}
	m, unknown := t.Ledger.MemberBySession(ctx, key)
	if unknown != nil || !team.KindOf(m.Spec.Agent).Sessions {
		return s, err
	}
	return t.Ledger.OpenSession(ctx, newSessionOf(m)) // its process, which has just been started, has not yet
}

// newSessionOf is the session of a member as its process opens it.
func newSessionOf(m ledger.Member) ledger.NewSession {
	provider, model, ok := strings.Cut(m.Spec.Model, "/")
	if !ok {
		provider = ""
	}
	return ledger.NewSession{Key: m.SessionKey, Member: m.SessionKey, Provider: provider, Model: model, Label: m.Name}
}

// Transcript returns the entries of a session, with the texts that are stored in files. If a file
// is missing, the entry names it.
func (t *Team) Transcript(ctx context.Context, s ledger.Session) ([]ledger.Entry, error) {
	list, err := t.Ledger.Entries(ctx, s.Key, 0, 0)
	if err != nil {
		return nil, err
	}
	return list, t.Whole(ctx, s.Member, list)
}

// Whole puts the texts that stand in files into the entries of a session of a member.
func (t *Team) Whole(ctx context.Context, member string, list []ledger.Entry) error {
	var dir string
	read := func(name string, into *string) error {
		if name == "" {
			return nil
		}
		if dir == "" {
			m, err := t.Ledger.MemberBySession(ctx, member)
			if err != nil {
				return err
			}
			dir = t.Layout.Bundle(m.Name).Outputs()
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		switch {
		case err == nil:
			*into = string(b)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		return nil
	}
	for i, e := range list {
		var meta struct {
			Long, Bytes string
			Pieces      []ledger.Piece
			Inputs      map[string]string
		}
		if len(e.Meta) == 0 || json.Unmarshal(e.Meta, &meta) != nil {
			continue
		}
		err := errors.Join(read(meta.Long, &list[i].Content), read(meta.Bytes, &list[i].Raw))
		text := func(name string) (text string, ok bool) {
			err = errors.Join(err, read(name, &text))
			return text, text != ""
		}
		list[i].Content = ledger.WholeText(list[i].Content, meta.Pieces, text)
		if len(meta.Inputs) > 0 {
			list[i].Meta = wholeInputs(e.Meta, meta.Inputs, text)
		}
		if err != nil {
			return team.Errorf(team.CodeUnavailable, "read entry %d of %s: %w", e.Seq, e.Session, err)
		}
	}
	return nil
}

// wholeInputs puts the inputs of calls that stand in files, by call id, into the meta of an entry.
func wholeInputs(meta json.RawMessage, files map[string]string, text func(file string) (string, bool)) json.RawMessage {
	var all map[string]json.RawMessage
	var calls []struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(meta, &all) != nil || json.Unmarshal(all["calls"], &calls) != nil {
		return meta
	}
	for i, c := range calls {
		if whole, ok := text(files[c.ID]); ok && json.Valid([]byte(whole)) {
			calls[i].Input = json.RawMessage(whole)
		}
	}
	raw, err := json.Marshal(calls)
	if err != nil {
		return meta
	}
	all["calls"] = raw
	if raw, err = json.Marshal(all); err != nil {
		return meta
	}
	return raw
}

// SetModel sets the model of a session from its next turn on; an empty provider and model remove
// the override. If an agent chooses a model for its own session that agents may not choose,
// SetModel waits for an approval.
func (t *Team) SetModel(ctx context.Context, c Caller, key, provider, model string) (ledger.Session, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return ledger.Session{}, err
	}
	s, err := t.Session(ctx, key)
	if err != nil {
		return s, err
	}
	own, err := t.mayChange(ctx, c, s)
	if err != nil {
		return s, err
	}
	if model != "" && t.Env.CheckModel != nil {
		if _, err := t.Env.CheckModel(ctx, provider+"/"+model); err != nil {
			return s, err
		}
	}
	spec, err := t.Ledger.Spec(ctx, s.ActiveAgentID)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return s, err
	}
	if err := t.checkSession(ctx, s, provider, model, spec.AgentSpec); err != nil {
		return s, err
	}
	if own {
		more, err := t.beyondModels(ctx, c, team.SpecModel{Provider: provider, Model: model})
		if err == nil {
			err = t.entitle(ctx, c, "session_set_model", more, map[string]string{"model_ref": provider + "/" + model, "session_key": s.Key})
		}
		if err != nil {
			return s, err
		}
	}
	return t.as(c).UpdateSession(ctx, ledger.SessionPatch{Key: s.Key, Provider: &provider, Model: &model})
}

// SetAgent sets the spec of a session from its next turn on, by id or name. exact refuses a name
// that is only similar. If an agent switches its own session to a spec that allows more than it
// has, SetAgent waits for an approval.
func (t *Team) SetAgent(ctx context.Context, c Caller, key, agent string, exact bool) (ledger.Session, ledger.Spec, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return ledger.Session{}, ledger.Spec{}, err
	}
	s, err := t.Session(ctx, key)
	if err != nil {
		return s, ledger.Spec{}, err
	}
	own, err := t.mayChange(ctx, c, s)
	if err != nil {
		return s, ledger.Spec{}, err
	}
	spec, err := t.spec(ctx, agent, exact)
	if err == nil {
		err = t.checkSession(ctx, s, s.ProviderOverride, s.ModelOverride, spec.AgentSpec)
	}
	if err != nil {
		return s, spec, err
	}
	if own {
		k, err := team.ParseSessionKey(s.Key)
		if err != nil {
			return s, spec, err
		}
		more, err := t.beyond(ctx, c, spec.AgentSpec, k.Kind)
		if err == nil {
			err = t.entitle(ctx, c, "session_set_agent", more, map[string]string{"agent": spec.ID, "session_key": s.Key})
		}
		if err != nil {
			return s, spec, err
		}
	}
	s, err = t.as(c).UpdateSession(ctx, ledger.SessionPatch{Key: s.Key, AgentID: &spec.ID})
	return s, spec, err
}

// spec finds a spec by id or name; unless exact, a unique prefix is enough.
func (t *Team) spec(ctx context.Context, agent string, exact bool) (ledger.Spec, error) {
	all, err := t.Specs(ctx)
	if err != nil {
		return ledger.Spec{}, err
	}
	spec, err := t.Ledger.Spec(ctx, agent)
	if err == nil || exact || !team.IsCode(err, team.CodeNotFound) {
		return spec, nearSpec(err, agent, all)
	}
	var near []ledger.Spec
	var names []string
	for _, s := range all {
		low := strings.ToLower(agent)
		if strings.Contains(strings.ToLower(s.ID), low) || strings.Contains(strings.ToLower(s.Name), low) {
			near, names = append(near, s), append(names, s.ID)
		}
	}
	switch len(near) {
	case 0:
		return spec, nearSpec(err, agent, all)
	case 1:
		return near[0], nil
	}
	return spec, team.Errorf(team.CodeConflict, "several agents are like %q: %s", agent, strings.Join(names, ", ")).WithReason(team.ReasonAgentAmbiguous)
}

// nearSpec adds a similar spec to the error.
func nearSpec(err error, agent string, all []ledger.Spec) error {
	var e *team.Error
	if !errors.As(err, &e) || !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	var names []string
	for _, s := range all {
		names = append(names, s.ID)
	}
	if near := team.Closest(agent, names); near != "" {
		return e.WithHint("did you mean " + near + "? teamctl agents lists them")
	}
	return err
}

// CloseSession closes a session and its children.
func (t *Team) CloseSession(ctx context.Context, c Caller, key, why string) error {
	s, err := t.Session(ctx, key)
	if err == nil {
		_, err = t.mayChange(ctx, c, s)
	}
	if err != nil {
		return err
	}
	return t.as(c).CloseSession(ctx, s.Key, why)
}

// interruptTurns interrupts the turns of a member with built-in sessions: it sets a mark on each,
// which the member's process finds on every backend and without a supervisor.
func (t *Team) interruptTurns(ctx context.Context, c Caller, m ledger.Member) error {
	open, err := t.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: m.SessionKey, Open: true})
	if err != nil {
		return err
	}
	for _, j := range open {
		if j.State != team.TurnRunning {
			continue
		}
		if err := t.as(c).CancelTurn(ctx, j.ID, "interrupted by "+c.Name); err != nil {
			return err
		}
	}
	return nil
}

// Compact compacts the conversation of a session in a turn of its own; keep says what the summary
// must contain.
func (t *Team) Compact(ctx context.Context, c Caller, key, keep string) error {
	s, err := t.Session(ctx, key)
	if err == nil {
		_, err = t.mayChange(ctx, c, s)
	}
	if err != nil {
		return err
	}
	_, err = t.as(c).TakeIn(ctx, ledger.TakeIn{Session: s.Key, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{
		Kind: ledger.EntryEvent, Content: keep, Meta: []byte(`{"compact":true}`),
	}}}})
	return err
}

// OnChange calls look now and after every change of the ledger, until look fails or ctx ends.
func (t *Team) OnChange(ctx context.Context, look func() error) error {
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for {
		if err := look(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changes:
		}
	}
}
