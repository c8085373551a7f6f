package tool

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// SinkKinds are the kinds of notices that a sink can be limited to.
func SinkKinds() []string {
	out := []string{}
	for _, k := range sink.Kinds() {
		out = append(out, string(k))
	}
	return out
}

// Sinks lists the team's notification sinks.
func (t *Team) Sinks(ctx context.Context) ([]string, error) {
	specs := []string{}
	_, err := t.Ledger.Setting(ctx, services.SettingNotify, &specs)
	return specs, err
}

// SinkAdd adds a sink (see sink.Parse).
func (t *Team) SinkAdd(ctx context.Context, c Caller, spec string) error {
	if _, err := sink.Parse(spec); err != nil {
		return team.Errorf(team.CodeInvalid, "add a sink: %w", err).
			WithHint("command:SHELL COMMAND, webhook:https://..., ntfy:https://SERVER/TOPIC, http://localhost... for both, or desktop")
	}
	// What has happened already is nothing for a new sink.
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return err
	}
	return t.changeSinks(ctx, c, func(specs []string) ([]string, error) {
		if slices.Contains(specs, spec) {
			return nil, team.Errorf(team.CodeConflict, "%q already exists", spec).WithReason(team.ReasonSinkExists)
		}
		return append(specs, spec), t.as(c).Set(ctx, services.SettingTold(spec), last)
	})
}

// SinkRemove removes a sink. Its address is enough if no other sink has it.
func (t *Team) SinkRemove(ctx context.Context, c Caller, spec string) error {
	if _, err := sink.Parse(spec); err != nil {
		return team.Errorf(team.CodeInvalid, "remove a sink: %w", err).WithHint("teamctl notify ls")
	}
	same := func(s string) bool {
		is, err := sink.Parse(s)
		return err == nil && is.Address() == spec
	}
	return t.changeSinks(ctx, c, func(specs []string) ([]string, error) {
		i := slices.Index(specs, spec)
		if at := slices.IndexFunc(specs, same); i < 0 && at >= 0 && !slices.ContainsFunc(specs[at+1:], same) {
			i = at
		}
		if i < 0 {
			return nil, team.Errorf(team.CodeNotFound, "sink %q does not exist", spec).WithReason(team.ReasonSinkNotFound).WithHint("teamctl notify ls")
		}
		err := t.as(c).Set(ctx, services.SettingTold(specs[i]), nil)
		return slices.Delete(specs, i, i+1), err
	})
}

func (t *Team) changeSinks(ctx context.Context, c Caller, change func([]string) ([]string, error)) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	specs, err := t.Sinks(ctx)
	if err != nil {
		return err
	}
	if specs, err = change(specs); err != nil {
		return err
	}
	if err := t.as(c).Set(ctx, services.SettingNotify, specs); err != nil {
		return err
	}
	_, err = t.as(c).Event(ctx, ledger.Event{Who: c.Name, What: team.EventTeamSetting, ID: services.SettingNotify})
	return err
}

// SinkTest sends a test notification to every sink.
func (t *Team) SinkTest(ctx context.Context, c Caller) ([]string, error) {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return nil, err
	}
	specs, err := t.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, spec := range specs {
		to, err := sink.Parse(spec)
		if err == nil {
			_, err = to.Deliver(ctx, run.BookOf(t.Layout), true, "person", sink.Notice{
				Team: t.Layout.Key, What: "test", Title: "teamctl " + t.Layout.Key, Text: "a test of " + to.Masked(), At: time.Now().UnixMilli(),
			})
		}
		if err != nil {
			errs = append(errs, team.Errorf(team.CodeUnavailable, "%w", err).WithReason(team.ReasonSink))
		}
	}
	return specs, joinErrors(errs)
}
