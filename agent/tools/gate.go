package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/team"
)

// Verdict is what becomes of a call before it runs.
type Verdict int

// Verdicts.
const (
	Allow Verdict = iota
	Ask           // a person decides
	Deny
)

// Decision is a verdict and what it rests on.
type Decision struct {
	Verdict Verdict
	Why     string // a rule, or the mode: recorded with the call
	Subject Subject
}

// Rules are whose call is judged, and by what.
type Rules struct {
	Permissions team.Permissions
	Member      string
	Mode        team.Mode
}

// Gate judges a call, in this order: what no mode allows, the team's rules that deny, the
// mode, the team's rules that allow; what is left is asked. The call's tool is one that
// the session has.
func (s *Space) Gate(r Rules, t Tool, input json.RawMessage) Decision {
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
	if t.Class == Edit && outside {
		return d.is(Deny, "it is outside the worktree")
	}
	asked := r.asked(s.dir, t, d.Subject)
	doubt := false
	for _, q := range asked {
		// A rule that allows everything shows whether a rule that denies is in doubt.
		v, rule := permit.Decide(team.Permissions{Deny: q.by.Deny, Allow: []team.PermissionRule{{Tool: "*"}}}, q.Request)
		switch v {
		case permit.Deny:
			return d.is(Deny, "denied: "+rule)
		case permit.Ask:
			doubt = true
		case permit.Allow:
		}
	}
	if v, why, decided := r.byMode(t, outside, doubt); decided {
		return d.is(v, why)
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

// byMode is what the mode alone decides.
func (r Rules) byMode(t Tool, outside, doubt bool) (v Verdict, why string, decided bool) {
	why = "mode " + string(r.Mode)
	if t.Class == Own || t.Class == Team || t.Class == Session { // with gates of their own
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

// request is what rules may name a call by, and the rules that are about it.
type request struct {
	permit.Request
	by team.Permissions
}

// asked are the requests of a call: its tool, and of a fetch its host.
func (r Rules) asked(dir string, t Tool, about Subject) []request {
	mode := r.Mode
	if mode == team.ModePlan || mode == team.ModeDelegate { // judged by Gate itself
		mode = team.ModeDefault
	}
	out := []request{{permit.Request{Member: r.Member, Mode: mode, Dir: dir, Tool: t.Name, Command: about.Command, Paths: about.Paths}, r.Permissions}}
	if about.Host != "" {
		out = append(out, r.host(about.Host))
	}
	return out
}

// hostRule begins the tool of rules that name a host: fetch:HOST, in which * is any text.
const hostRule = "fetch:"

func (r Rules) host(host string) request {
	others := func(p team.PermissionRule) bool { return !strings.HasPrefix(p.Tool, hostRule) }
	return request{permit.Request{Member: r.Member, Tool: hostRule + strings.ToLower(host)}, team.Permissions{
		Deny:  slices.DeleteFunc(slices.Clone(r.Permissions.Deny), others),
		Allow: slices.DeleteFunc(slices.Clone(r.Permissions.Allow), others),
	}}
}

// AllowsHost reports whether a rule names a host, so that its address may be private.
func (r Rules) AllowsHost(host string) bool {
	q := r.host(host)
	v, _ := permit.Decide(q.by, q.Request)
	return v == permit.Allow
}
