package tool

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// Names of the team's settings. A name that ends with a dot is followed by a member's name, and
// applies only to that member.
const (
	SetDelegation      = "delegation"
	SetDelegationOf    = "delegation."
	SetSpawnDepth      = "spawn-depth"
	SetMemberBroadcast = "member-broadcast"
	SetMaxHops         = "max-hops"
	SetAnswerer        = "answerer."
	SetLeadAnswers     = "lead-answers" // short for answerer.permission leader, with the value "permissions"
	SetDeadline        = "approval-deadline"
	SetTurnRounds      = "turn-rounds"
	SetModel           = "model"
	SetVerifyTimeout   = services.SettingVerifyTimeout
	SetWebURL          = services.SettingWebURL
)

// setting is one row of the table of settings.
type setting struct {
	Name    string
	Help    string
	Default string
	check   func(string) error
}

// settings lists all settings that a person may change.
var settings = []setting{
	{SetDelegation, "auto, approval_required or forbidden: whether members hand on work (default: by role)", "", checkDelegation},
	{SetDelegationOf, "the same for one member: delegation.NAME", "", checkDelegation},
	{SetSpawnDepth, "how deep members may spawn members", "0", checkCount(5)},
	{SetMemberBroadcast, "true: every member may broadcast", "false", checkBool},
	{SetMaxHops, "how often a message may be handed on", strconv.Itoa(team.MaxHops), checkCount(team.MaxHops)},
	{SetAnswerer, "who else than a person answers: answerer.plan, .permission, .delegation or .review; leader, reviewer or person", "", checkAnswerer},
	{SetDeadline, "how long plans, permissions and delegations wait for an answer; 0: no limit", "0", checkDuration},
	{SetModel, "model of sessions without one of their own or of their agent, as anthropic/NAME (default: that of config.yaml)", "", checkModel},
	{SetModels, "models that agents choose by themselves, as anthropic/* script/demo (default: all of configured providers)", "", checkModels},
	{ledger.SettingLane, "turns of a lane at once: lane.main, .teammate, .subagent, .internal_announce or .cron", "", checkAtLeastOne(team.MaxLaneWidth)},
	{ledger.SettingSessionDepth, "how deep child sessions may be nested", "1", checkAtLeastOne(ledger.MaxSessionDepth)},
	{ledger.SettingChildren, "open child sessions of a session", strconv.Itoa(ledger.DefaultChildren), checkAtLeastOne(ledger.MaxChildren)},
	{SetTurnRounds, "answers of a model in one turn, summaries included", strconv.Itoa(team.MaxTurnRounds), checkAtLeastOne(10_000)},
	{SetVerifyTimeout, "how long a task may be verified that has no metadata.timeout; 1h at most", services.VerifyTimeout.String(), checkVerifyTimeout},
	{SetWebURL, "address of a page as you reach it, which notifications lead to, at /t/TEAM", "", checkURL},
}

// Setting is a setting with its current value.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"` // not set
	Help    string `json:"help"`
}

// Settings lists the settings with their values.
func (t *Team) Settings(ctx context.Context) ([]Setting, error) {
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	var out []Setting
	for _, s := range settings {
		names := []string{s.Name}
		if strings.HasSuffix(s.Name, ".") {
			names = names[:0]
			switch s.Name {
			case SetAnswerer:
				for _, k := range approvalKinds {
					names = append(names, s.Name+string(k))
				}
			case ledger.SettingLane:
				for _, l := range team.Lanes() {
					names = append(names, s.Name+string(l))
				}
			default:
				for _, m := range members {
					names = append(names, s.Name+m.Name)
				}
			}
		}
		for _, name := range names {
			v, err := t.setting(ctx, name)
			if err != nil {
				return nil, err
			}
			if v == "" && name != s.Name && s.Name == SetDelegationOf {
				continue // one row for every member would hide the others
			}
			out = append(out, Setting{Name: name, Value: cmp.Or(v, s.defaultOf(name)), Default: v == "", Help: s.Help})
		}
	}
	return out, nil
}

func (s setting) defaultOf(name string) string {
	switch name {
	case SetAnswerer + string(ledger.ApproveReview):
		return string(team.RoleReviewer)
	case SetAnswerer + string(ledger.ApprovePlan), SetAnswerer + string(ledger.ApproveDelegation):
		return string(team.RoleLeader)
	case SetAnswerer + string(ledger.ApprovePermission):
		return ledger.AnswererPerson
	}
	if lane, ok := strings.CutPrefix(name, ledger.SettingLane); ok {
		return strconv.Itoa(team.Lane(lane).Width())
	}
	return s.Default
}

// Set changes one setting; an empty value resets it.
func (t *Team) Set(ctx context.Context, c Caller, name, value string) error {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return err
	}
	if name == SetLeadAnswers {
		if value != "" && value != "permissions" {
			return team.Errorf(team.CodeInvalid, "invalid %s %q", name, value).WithHint("teamctl settings " + name + " permissions")
		}
		if name = SetAnswerer + string(ledger.ApprovePermission); value != "" {
			value = string(team.RoleLeader)
		}
	}
	s, err := findSetting(name)
	if err != nil {
		return err
	}
	if s.Name == SetDelegationOf {
		if _, err := t.Member(ctx, strings.TrimPrefix(name, SetDelegationOf)); err != nil {
			return err
		}
	}
	if value != "" {
		if err := s.check(value); err != nil {
			return err
		}
	}
	if name == SetModel {
		if err := t.checkTeamModel(ctx, value); err != nil {
			return err
		}
	}
	before, err := t.setting(ctx, name)
	if err != nil {
		return err
	}
	if value == "" {
		err = t.as(c).Set(ctx, name, nil)
	} else {
		err = t.as(c).Set(ctx, name, value)
	}
	if err != nil {
		return err
	}
	_, err = t.as(c).Event(ctx, ledger.Event{Who: c.Name, What: team.EventTeamSetting, ID: name, Before: before, After: value})
	return err
}

func findSetting(name string) (setting, error) {
	i := slices.IndexFunc(settings, func(s setting) bool {
		if strings.HasSuffix(s.Name, ".") {
			return strings.HasPrefix(name, s.Name) && len(name) > len(s.Name)
		}
		return s.Name == name
	})
	known := i >= 0
	if known && settings[i].Name == SetAnswerer {
		known = slices.Contains(approvalKinds, ledger.ApprovalKind(name[len(SetAnswerer):]))
	}
	if known && settings[i].Name == ledger.SettingLane {
		known = slices.Contains(team.Lanes(), team.Lane(name[len(ledger.SettingLane):]))
	}
	if known {
		return settings[i], nil
	}
	return setting{}, team.Errorf(team.CodeNotFound, "no setting %q", name).WithReason(team.ReasonSettingNotFound).WithHint("teamctl settings")
}

// setting returns the value of a setting, or "".
func (t *Team) setting(ctx context.Context, name string) (v string, err error) {
	_, err = t.Ledger.Setting(ctx, name, &v)
	return v, err
}

// settingInt returns the value of a numeric setting.
func (t *Team) settingInt(ctx context.Context, name string, otherwise int) (int, error) {
	v, err := t.setting(ctx, name)
	if err != nil || v == "" {
		return otherwise, err
	}
	return strconv.Atoi(v)
}

// deadline returns when a new approval request expires, in Unix milliseconds; 0: never.
func (t *Team) deadline(ctx context.Context) (int64, error) {
	v, err := t.setting(ctx, SetDeadline)
	if err != nil || v == "" || v == "0" {
		return 0, err
	}
	d, err := time.ParseDuration(v)
	return time.Now().Add(d).UnixMilli(), err
}

func checkDelegation(v string) error {
	_, err := ParseDelegation(v)
	return err
}

func checkBool(v string) error {
	if _, err := strconv.ParseBool(v); err != nil {
		return team.Errorf(team.CodeInvalid, "%q is neither true nor false", v)
	}
	return nil
}

func checkCount(most int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 0 || n > most {
			return team.Errorf(team.CodeInvalid, "invalid value %q: a number from 0 to %d is needed", v, most)
		}
		return nil
	}
}

func checkAtLeastOne(most int) func(string) error {
	return func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > most {
			return team.Errorf(team.CodeInvalid, "invalid value %q: a number from 1 to %d is needed", v, most)
		}
		return nil
	}
}

func checkModels(v string) error {
	for _, f := range fields(v) {
		if provider, model, ok := strings.Cut(f, "/"); f != "*" && (!ok || provider == "" || model == "") {
			return team.Errorf(team.CodeInvalid, "invalid model %q: provider/model is needed, in which * is any text", f)
		}
	}
	return nil
}

func checkModel(v string) error {
	if provider, model, ok := strings.Cut(v, "/"); !ok || provider == "" || model == "" {
		return team.Errorf(team.CodeInvalid, "invalid model %q: provider/model is needed", v).WithHint("teamctl models")
	}
	return nil
}

func checkAnswerer(v string) error {
	switch v {
	case ledger.AnswererPerson, string(team.RoleLeader), string(team.RoleReviewer):
		return nil
	}
	return team.Errorf(team.CodeInvalid, "%q cannot answer approvals", v).WithHint("person, leader or reviewer")
}

func checkDuration(v string) error {
	if d, err := time.ParseDuration(v); v != "0" && (err != nil || d <= 0) {
		return team.Errorf(team.CodeInvalid, "invalid duration %q: 0 or, for example, 10m is needed", v)
	}
	return nil
}

func checkURL(v string) error {
	if u, err := url.Parse(v); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return team.Errorf(team.CodeInvalid, "invalid address %q: for example https://machine.example.com is needed", v)
	}
	return nil
}

func checkVerifyTimeout(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d <= 0 || d > services.MaxVerify {
		return team.Errorf(team.CodeInvalid, "invalid duration %q: for example 10m is needed, up to %s", v, services.MaxVerify)
	}
	return nil
}
