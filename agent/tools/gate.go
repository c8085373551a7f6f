package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/team"
)

// Verdict is the decision about a call before it runs.
type Verdict int

// Verdicts.
const (
	Allow Verdict = iota
	Ask           // a person decides
	Deny
)

// Decision is a verdict and its reason.
type Decision struct {
	Verdict Verdict
	Why     string // a rule or the mode; recorded with the call
	Subject Subject
}

// Rules has the caller and the rules that apply to it.
type Rules struct {
	Permissions team.Permissions
	Member      string
	Mode        team.Mode
}

// rules returns the team's current rules.
func (s *Space) rules(ctx context.Context) (Rules, error) {
	if s.cfg.Rules == nil {
		return Rules{Mode: team.ModeDefault}, nil
	}
	return s.cfg.Rules(ctx)
}

// Gate judges a call, in this order: calls that no mode permits, the team's deny rules, the mode,
// the team's allow rules; the rest needs approval. A file outside the worktree is written in no
// mode unless a rule names its path. The session must have the call's tool.
func (s *Space) Gate(ctx context.Context, t Tool, input json.RawMessage) (Decision, error) {
	r, err := s.rules(ctx)
	if err != nil {
		return Decision{}, err
	}
	return s.judge(r, t, input), nil
}

func (s *Space) judge(r Rules, t Tool, input json.RawMessage) Decision {
	var d Decision
	if t.About != nil {
		d.Subject = t.About(input)
	}
	outside := false
	for _, p := range d.Subject.Paths {
		switch s.Locate(p) {
		case Forbidden:
			return d.is(Deny, p+" may not be opened")
		case Outside:
			outside = true
		case Inside, Readable:
		}
	}
	asked := r.asked(s.dir, t, d.Subject)
	doubt := false
	for _, q := range asked {
		// A rule that allows everything reveals whether a deny rule is in doubt.
		v, rule := permit.Decide(team.Permissions{Deny: q.by.Deny, Allow: []team.PermissionRule{{Tool: "*"}}}, q.Request)
		switch v {
		case permit.Deny:
			return d.is(Deny, "denied: "+rule)
		case permit.Ask:
			doubt = true
		case permit.Allow:
		}
	}
	opened := ""
	if t.Class == Edit && outside {
		var ok bool
		if opened, ok = r.opens(s.dir, t.Name, d.Subject.Paths...); !ok {
			return d.is(Deny, "it is outside the worktree, and no rule allows its path")
		}
	}
	if v, why, decided := r.byMode(t, outside, doubt); decided {
		return d.is(v, why)
	}
	if opened != "" {
		return d.is(Allow, "allowed: "+opened)
	}
	for _, q := range asked {
		if v, rule := permit.Decide(q.by, q.Request); v == permit.Allow {
			return d.is(Allow, "allowed: "+rule)
		}
	}
	if r.Mode == team.ModeDontAsk {
		return d.is(Deny, "its mode is dontAsk, and no rule allows it")
	}
	return d.is(Ask, "no rule allows it")
}

func (d Decision) is(v Verdict, why string) Decision {
	d.Verdict, d.Why = v, why
	return d
}

// byMode returns the decision of the mode alone.
func (r Rules) byMode(t Tool, outside, doubt bool) (v Verdict, why string, decided bool) {
	why = "mode " + string(r.Mode)
	if t.Class == Own || t.Class == Team || t.Class == Session { // these have gates of their own
		return Allow, why, true
	}
	switch r.Mode {
	case team.ModeBypass:
		return Allow, why, true
	case team.ModeDelegate:
		return Deny, why + ": coordination only", true
	case team.ModePlan:
		if t.Class != Read {
			return Deny, why + ": nothing is changed before the plan is approved", true
		}
	case team.ModeAcceptEdits:
		if t.Class == Edit && !outside && !doubt {
			return Allow, why, true
		}
	case team.ModeDefault, team.ModeDontAsk:
	}
	if t.Class == Read && !outside && !doubt {
		return Allow, why, true
	}
	return Ask, "", false
}

// request is what rules may match in a call, and the rules that concern it.
type request struct {
	permit.Request
	by team.Permissions
}

// asked returns the requests of a call: its tool, and for a fetch its host.
func (r Rules) asked(dir string, t Tool, about Subject) []request {
	out := []request{{permit.Request{Member: r.Member, Dir: dir, Tool: t.Name, Command: about.Command, Paths: about.Paths}, r.Permissions}}
	if about.Host != "" {
		out = append(out, r.host(about.Host))
	}
	return out
}

// opens returns the rule that permits writing files outside the worktree: one that names their
// paths. A rule that names only the tool concerns the worktree.
func (r Rules) opens(dir, tool string, paths ...string) (rule string, ok bool) {
	p := team.Permissions{Deny: r.Permissions.Deny, Allow: slices.DeleteFunc(slices.Clone(r.Permissions.Allow), func(a team.PermissionRule) bool { return a.Path == "" })}
	v, rule := permit.Decide(p, permit.Request{Member: r.Member, Dir: dir, Tool: tool, Paths: paths})
	return rule, v == permit.Allow
}

// hides reports whether a rule denies reading a file.
func (r Rules) hides(dir, file string) bool {
	if len(r.Permissions.Deny) == 0 {
		return false
	}
	v, _ := permit.Decide(team.Permissions{Deny: r.Permissions.Deny}, permit.Request{Member: r.Member, Dir: dir, Tool: "read", Paths: []string{file}})
	return v == permit.Deny
}

// hostRule is the prefix of rules that name a host: fetch:HOST, in which * matches any text.
const hostRule = "fetch:"

func (r Rules) host(host string) request {
	others := func(p team.PermissionRule) bool { return !strings.HasPrefix(p.Tool, hostRule) }
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return request{permit.Request{Member: r.Member, Tool: hostRule + host}, team.Permissions{
		Deny:  slices.DeleteFunc(slices.Clone(r.Permissions.Deny), others),
		Allow: slices.DeleteFunc(slices.Clone(r.Permissions.Allow), others),
	}}
}

// ofHost returns the rules' verdict on a host: if they allow it, its address may be private.
func (r Rules) ofHost(host string) permit.Verdict {
	q := r.host(host)
	v, _ := permit.Decide(q.by, q.Request)
	return v
}
