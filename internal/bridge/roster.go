package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// memberData distinguishes members of the same name.
type memberData struct {
	JoinedAt int64 `json:"joinedAt"`
}

func joinedAt(r ledger.Mirrored) int64 {
	var d memberData
	_ = json.Unmarshal(r.Data, &d) // written by Marshal
	return d.JoinedAt
}

func withJoined(r ledger.Mirrored, at int64) ledger.Mirrored {
	r.Data, _ = json.Marshal(memberData{at}) // a number: cannot fail
	return r
}

// isOurs reports whether an entry of the config was added by the bridge.
func (p *pass) isOurs(m team.ConfigMember) bool {
	r, ok := p.there(ledger.MirrorMember, m.Name)
	return ok && r.Ours && joinedAt(r) == m.JoinedAt
}

// rosterHere adds the native members to our roster, and removes those that left.
func (p *pass) rosterHere(ctx context.Context) error {
	changed := false
	for _, r := range p.of(ledger.MirrorMember) {
		if r.Ours {
			continue
		}
		if m := p.cfg.Member(r.There); m != nil && m.JoinedAt == joinedAt(r) {
			continue
		}
		if err := p.leave(ctx, r); err != nil {
			return err
		}
		changed = true
	}
	for _, m := range p.cfg.Members {
		if isLead(p.cfg, m) || p.isOurs(m) {
			continue
		}
		// A native member that has taken the name of one of ours waits until rosterThere has found
		// another name for ours.
		if _, known := p.there(ledger.MirrorMember, m.Name); known {
			continue
		}
		added, err := p.addHere(ctx, m)
		if err != nil {
			return err
		}
		changed = changed || added
	}
	if !changed {
		return nil
	}
	if err := p.reread(ctx); err != nil {
		return err
	}
	var err error
	if p.members, err = p.led().Members(ctx, false); err != nil {
		return err
	}
	return publish.Config(ctx, p.in.Team.Layout, p.in.Team.Ledger)
}

func (p *pass) addHere(ctx context.Context, m team.ConfigMember) (bool, error) {
	name, err := team.AgentKey(m.Name)
	if team.ReasonOf(err) == team.ReasonReservedName {
		name, err = team.AgentKey(m.Name + "-2") // the native team may contain that name, too
	}
	if err != nil {
		p.sayOnce(NoteRefused, m.Name, err.Error())
		return false, nil
	}
	lead := p.members[0]
	added, renamed, err := p.led().MirrorMember(ctx, withJoined(p.row(ledger.MirrorMember, m.Name, ""), m.JoinedAt), ledger.Member{
		Name: name, Color: m.Color, Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown,
		Spec: team.MemberSpec{Agent: team.AgentExternal, AgentType: cmp.Or(m.AgentType, "claude"), Model: m.Model, WorktreeMode: "none",
			Cwd: m.Cwd, Origin: team.Origin{ParentSession: lead.SessionKey, SpawnedBy: lead.SessionKey, Lane: "teammate"}},
	})
	if err != nil {
		return false, err
	}
	p.say(NoteMemberHere, added.Name, "")
	if renamed || name != m.Name {
		p.say(NoteClash, m.Name, fmt.Sprintf("is called %s here", added.Name))
	}
	return true, nil
}

// leave removes a native member from our roster; its tasks return to the board.
func (p *pass) leave(ctx context.Context, r ledger.Mirrored) error {
	if err := p.led().RemoveMember(ctx, r.Here); err != nil && !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	p.say(NoteMemberLeft, r.There, "")
	return p.led().Mirror(ctx, nil, []ledger.Mirrored{r})
}

// goesThere reports whether one of our members is shown to the native team: it should be running,
// or has joined itself, and is not a native one.
func (p *pass) goesThere(m ledger.Member) bool {
	if m.Name == team.LeadName || m.RemovedAt != 0 {
		return false
	}
	if r, ok := p.here(ledger.MirrorMember, m.SessionKey); ok && !r.Ours {
		return false
	}
	return m.Desired == team.WantRunning || team.KindOf(m.Spec.Agent).External
}

// rosterThere adds our members to the program's config.
func (p *pass) rosterThere(ctx context.Context) error {
	var put, drop []ledger.Mirrored
	for _, m := range p.members {
		if !p.goesThere(m) {
			continue
		}
		r, ok := p.here(ledger.MirrorMember, m.SessionKey)
		if ok {
			there := p.cfg.Member(r.There)
			if there == nil || there.JoinedAt == joinedAt(r) {
				continue
			}
			drop = append(drop, r) // another member has the name there by now
		}
		name := team.UniqueName(m.Name, func(n string) bool { return p.takenThere(n, put) })
		r = withJoined(p.row(ledger.MirrorMember, name, m.SessionKey), m.JoinedAt)
		r.Ours = true
		put = append(put, r)
		if name != m.Name {
			p.say(NoteClash, m.Name, "is called "+name+" there")
		}
	}
	if err := p.led().Mirror(ctx, put, drop); err != nil {
		return err
	}
	if len(put)+len(drop) > 0 {
		if err := p.reread(ctx); err != nil {
			return err
		}
	}
	return p.showThere(ctx, put)
}

func (p *pass) takenThere(name string, put []ledger.Mirrored) bool {
	same := func(s string) bool { return strings.EqualFold(s, name) }
	return slices.ContainsFunc(p.cfg.Members, func(m team.ConfigMember) bool { return same(m.Name) }) ||
		slices.ContainsFunc(p.of(ledger.MirrorMember), func(r ledger.Mirrored) bool { return same(r.There) }) ||
		slices.ContainsFunc(put, func(r ledger.Mirrored) bool { return same(r.There) })
}

// showThere adds our members that are missing in the config: new ones, and ones lost by a writer
// without a lock.
func (p *pass) showThere(ctx context.Context, fresh []ledger.Mirrored) error {
	missing := map[string]memberFacts{}
	for _, m := range p.members {
		r, ok := p.here(ledger.MirrorMember, m.SessionKey)
		if ok && r.Ours && p.goesThere(m) && p.cfg.Member(r.There) == nil {
			missing[r.There] = memberFacts{kind: cmp.Or(m.Spec.AgentType, m.Spec.Agent), model: m.Spec.Model, color: m.Color,
				cwd: cmp.Or(m.Worktree, m.Spec.Cwd), joinedAt: m.JoinedAt}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err := p.native.editConfig(ctx, func(cfg *team.Config) bool {
		changed := false
		for _, name := range sortedKeys(missing) {
			if cfg.Member(name) == nil {
				cfg.Members = append(cfg.Members, ourMember(cfg, name, missing[name]))
				changed = true
			}
		}
		p.cfg = cfg
		return changed
	})
	if err != nil {
		return err
	}
	for _, r := range fresh {
		p.say(NoteMemberThere, r.There, "")
	}
	return nil
}

// rosterLeft removes our former members from the config. It runs last, since their answers to a
// shutdown are sent under their names.
func (p *pass) rosterLeft(ctx context.Context) error {
	if err := p.reread(ctx); err != nil { // without the answered requests
		return err
	}
	gone := map[string]int64{}
	var drop []ledger.Mirrored
	for _, r := range p.of(ledger.MirrorMember) {
		if !r.Ours || p.stopAwaited(r) {
			continue
		}
		i := slices.IndexFunc(p.members, func(m ledger.Member) bool { return m.SessionKey == r.Here })
		if i >= 0 && p.goesThere(p.members[i]) {
			continue
		}
		gone[r.There] = joinedAt(r)
		drop = append(drop, r)
	}
	if len(drop) == 0 {
		return nil
	}
	if err := p.hideThere(ctx, gone); err != nil {
		return err
	}
	for _, r := range drop {
		p.say(NoteMemberLeft, r.There, "")
	}
	return p.led().Mirror(ctx, nil, drop)
}

// hideThere removes our members from the config, by name and joinedAt.
func (p *pass) hideThere(ctx context.Context, gone map[string]int64) error {
	return p.native.editConfig(ctx, func(cfg *team.Config) bool {
		before := len(cfg.Members)
		cfg.Members = slices.DeleteFunc(cfg.Members, func(m team.ConfigMember) bool {
			at, ok := gone[m.Name]
			return ok && at == m.JoinedAt
		})
		p.cfg = cfg
		return len(cfg.Members) != before
	})
}

// dismiss removes the members of a deleted native team from our roster.
func (b *bridge) dismiss(ctx context.Context) error {
	p := &pass{bridge: b}
	if err := p.reread(ctx); err != nil {
		return err
	}
	for _, r := range p.of(ledger.MirrorMember) {
		if r.Ours {
			continue
		}
		if err := p.leave(ctx, r); err != nil {
			return err
		}
	}
	if err := p.led().Mirror(ctx, nil, slices.Concat(slices.Collect(maps.Values(p.rows.kinds))...)); err != nil {
		return err
	}
	if err := p.led().Set(ctx, sinceSetting+b.id, nil); err != nil {
		return err
	}
	return publish.Config(ctx, b.in.Team.Layout, b.in.Team.Ledger)
}

// Remove removes what a bridge has added: our members there and theirs here. Mirrored mail and
// tasks stay, and so does the record of the tasks.
func Remove(ctx context.Context, in In) (err error) {
	b, unlock, err := open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = joinErrs(err, unlock()) }()
	return b.retried(ctx, func(ctx context.Context) (bool, error) { return false, b.remove(ctx) })
}

func (b *bridge) remove(ctx context.Context) error {
	if err := b.settleDrafts(ctx); err != nil {
		return err
	}
	p, err := b.look(ctx)
	if err != nil {
		return err
	}
	gone := map[string]int64{}
	for _, r := range p.of(ledger.MirrorMember) {
		if r.Ours {
			gone[r.There] = joinedAt(r)
			continue
		}
		if err := p.leave(ctx, r); err != nil {
			return err
		}
	}
	if err := p.hideThere(ctx, gone); err != nil {
		return err
	}
	drop := slices.Concat(p.of(ledger.MirrorMember), p.of(ledger.MirrorStop))
	if err := p.led().Mirror(ctx, nil, drop); err != nil {
		return err
	}
	if err := p.led().Set(ctx, sinceSetting+b.id, nil); err != nil {
		return err
	}
	return publish.Config(ctx, b.in.Team.Layout, b.in.Team.Ledger)
}
