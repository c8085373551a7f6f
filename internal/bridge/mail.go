package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// mailHere mirrors the mail in our members' native mailboxes.
func (p *pass) mailHere(ctx context.Context) error {
	for _, r := range p.of(ledger.MirrorMember) {
		if !r.Ours {
			continue
		}
		to, ok := p.member(r.Here)
		if !ok {
			continue
		}
		err := p.takeMail(ctx, r.There, to)
		if notWhole(err) {
			p.soon = true
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) member(session string) (ledger.Member, bool) {
	i := slices.IndexFunc(p.members, func(m ledger.Member) bool { return m.SessionKey == session })
	if i < 0 {
		return ledger.Member{}, false
	}
	return p.members[i], true
}

// takeMail mirrors the entries of one mailbox and then removes them: nothing else reads them. The
// record of an entry is dropped once the entry is removed.
func (p *pass) takeMail(ctx context.Context, there string, to ledger.Member) error {
	box, err := p.box(there)
	if err != nil {
		return err
	}
	entries, err := box.Look()
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, e := range entries {
		if e.Read {
			continue
		}
		ok, err := p.takeEntry(ctx, there, to, e)
		if err != nil && !refusal(err) {
			return err
		}
		if err != nil {
			p.sayOnce(NoteRefused, there, fmt.Sprintf("mail of %s stays there: %v", e.From, err))
		}
		if ok && err == nil {
			taken[e.Key()] = true
		}
	}
	if len(taken) > 0 {
		ctx, cancel := context.WithTimeout(ctx, lockWait)
		defer cancel()
		if err := box.Drop(ctx, taken); err != nil {
			return err
		}
	}
	return p.forget(ctx, there, entries, taken)
}

// forget drops the records of entries that are no longer in the mailbox.
func (p *pass) forget(ctx context.Context, there string, entries []inbox.Entry, taken map[string]bool) error {
	left := map[string]bool{}
	for _, e := range entries {
		if key := e.Key(); !taken[key] {
			left[mailKey(there, key)] = true
		}
	}
	var drop []ledger.Mirrored
	for _, r := range p.of(ledger.MirrorMail) {
		if strings.HasPrefix(r.There, there+"/") && !left[r.There] {
			drop = append(drop, r)
		}
	}
	for key := range taken {
		drop = append(drop, p.row(ledger.MirrorMail, mailKey(there, key), ""))
	}
	return p.led().Mirror(ctx, nil, drop)
}

func mailKey(there, key string) string { return there + "/" + key }

// takeEntry posts one entry; false leaves it in place, because its sender is unknown or it is not
// mail.
func (p *pass) takeEntry(ctx context.Context, there string, to ledger.Member, e inbox.Entry) (bool, error) {
	from, ok := p.senderHere(e.From)
	if !ok {
		p.sayOnce(NoteRefused, there, fmt.Sprintf("mail stays there: it is from %q, which is not a member there", e.From))
		return false, nil
	}
	if f, is := e.Frame(); is && f.Kind() == team.KindShutdownRequest {
		return p.shutdownHere(ctx, there, from, to, f)
	}
	n, ok := p.words(e)
	if !ok {
		p.sayOnce(NoteRefused, there, "an approval stays there: what waits is answered with teamctl approvals")
		return false, nil
	}
	n.From, n.To, n.ToSession = from, to.Name, to.SessionKey
	if err := p.in.Team.PostMirrored(ctx, p.row(ledger.MirrorMail, mailKey(there, e.Key()), ""), n); err != nil {
		return false, err
	}
	p.say(NoteMailHere, to.Name, "from "+from)
	return true, nil
}

// senderHere returns our name for the sender of an entry.
func (p *pass) senderHere(name string) (string, bool) {
	if name == team.LeadName {
		return name, true
	}
	r, ok := p.there(ledger.MirrorMember, name)
	if !ok || r.Ours {
		return "", false
	}
	m, ok := p.member(r.Here)
	return m.Name, ok
}

// stopData names the member whose shutdown the native lead has requested.
type stopData struct {
	There   string `json:"there"`
	Session string `json:"session"`
}

// shutdownHere asks one of our members to shut down at the native lead's request. The answer is
// returned under the request's own id.
func (p *pass) shutdownHere(ctx context.Context, there, from string, to ledger.Member, f inbox.Frame) (bool, error) {
	if from != team.LeadName {
		p.sayOnce(NoteRefused, there, "a shutdown request stays there: it is from "+from+", not from the lead")
		return false, nil
	}
	if _, asked := p.there(ledger.MirrorStop, f.Correlation()); asked {
		return true, nil
	}
	reason := ""
	if r, ok := f.(inbox.ShutdownRequest); ok {
		reason = r.Reason
	}
	sent, err := p.in.Team.Send(ctx, p.in.Caller, tool.SendIn{Type: string(team.KindShutdownRequest), Recipient: to.Name, Content: reason})
	if err != nil {
		return false, err
	}
	r := p.row(ledger.MirrorStop, f.Correlation(), cmp.Or(sent.RequestID, to.SessionKey))
	if r.Data, err = json.Marshal(stopData{there, to.SessionKey}); err != nil {
		return false, err
	}
	if err := p.led().Mirror(ctx, []ledger.Mirrored{r}, nil); err != nil {
		return false, err
	}
	p.rows.add(r)
	p.say(NoteMailHere, to.Name, "asked to shut down")
	return true, nil
}

// stopAwaited reports whether the native lead is still to be notified of the outcome of its
// request to one of our members.
func (p *pass) stopAwaited(r ledger.Mirrored) bool {
	return slices.ContainsFunc(p.of(ledger.MirrorStop), func(s ledger.Mirrored) bool {
		var d stopData
		return json.Unmarshal(s.Data, &d) == nil && d.Session == r.Here
	})
}

// batch has the mail for one native mailbox, in the order of delivery.
type batch struct {
	entries []inbox.Entry
	sent    draftData
}

// draftData is what is delivered once a draft has become a mailbox.
type draftData struct {
	Marks []ledger.DeliveryMark `json:"marks,omitempty"`
	Stops []string              `json:"stops,omitempty"` // requests that it answers
}

// mailThere mirrors mail to the lead and to native members.
func (p *pass) mailThere(ctx context.Context) error {
	targets := map[string]string{p.lead().SessionKey: team.LeadName}
	for _, r := range p.of(ledger.MirrorMember) {
		if !r.Ours {
			targets[r.Here] = r.There
		}
	}
	p.taken.keep(slices.Collect(maps.Values(targets)))
	for _, session := range slices.Sorted(maps.Keys(targets)) {
		err := p.mailTo(ctx, session, targets[session])
		if notWhole(err) {
			p.soon = true
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) lead() ledger.Member {
	i := slices.IndexFunc(p.members, func(m ledger.Member) bool { return m.Name == team.LeadName })
	if i < 0 {
		return ledger.Member{}
	}
	return p.members[i]
}

func (p *pass) mailTo(ctx context.Context, session, there string) error {
	if session == "" {
		return nil
	}
	waiting, err := p.led().Waiting(ctx, session)
	if err != nil {
		return err
	}
	box, err := p.box(there)
	if err != nil {
		return err
	}
	u, err := p.accept(ctx, box, there, waiting)
	if err != nil {
		return err
	}
	awaits := false
	defer func() {
		if p.takesAll(there) {
			p.taken.expect(there, u.handed)
		}
		if !awaits {
			p.taken.leave(there)
		}
	}()
	var b batch
	for _, o := range u.waiting {
		if o.Message.Seq <= p.since {
			continue
		}
		if o.Delivery.State != team.Mailed && o.Delivery.State != team.Held {
			continue // not in our own mailbox yet, or mirrored already
		}
		p.addOut(&b, o)
	}
	if there == team.LeadName {
		if err := p.addEnded(ctx, &b, u.waiting); err != nil {
			return err
		}
	}
	if len(b.entries) == 0 {
		return nil
	}
	if u.taking && !p.bursts {
		p.sayWaits(there)
		return nil
	}
	// Checked before any write, since each attempt would trigger the next one.
	entries, err := box.Look()
	if err != nil {
		return err
	}
	at, err := p.starting(ctx, box, there, entries)
	if err != nil {
		return err
	}
	switch at {
	case startsNow:
		p.sayOnce(NoteWaits, there, "it starts: what is sent to it waits until it has read its prompt")
		return nil
	case readsNothing:
		awaits = true
		p.sayOnce(NoteWaits, there, fmt.Sprintf("nothing reads its mailbox: what is sent to it waits until its program has done so for %s, for %s at most",
			p.starts.marks, p.starts.reads))
		return nil
	case started:
	}
	if !mayAdd(p.bursts)(entries) || p.markAwaited(there, entries, &u) {
		p.sayWaits(there)
		return nil
	}
	if err := p.wakeFirst(ctx, there); err != nil {
		return err
	}
	for _, e := range b.entries {
		if !isFrame(e.Text) {
			u.handed[e.ID] = true
		}
	}
	return p.deliver(ctx, box, there, b)
}

// addOut adds one message, in the program's format.
func (p *pass) addOut(b *batch, o ledger.Outgoing) {
	text, ok := p.wordsThere(o.Message)
	if !ok {
		return
	}
	evidence := inItsMailbox
	if o.Delivery.State == team.Held && o.Delivery.Reason == takenAndLost {
		text, evidence = knownAlready+"\n\n"+text, inItsMailboxAgain
	}
	e := inbox.Entry{From: p.senderThere(o.Message.From), Text: text, Summary: o.Message.Summary, ID: o.Message.ID, Type: "message",
		Timestamp: inbox.Timestamp(time.UnixMilli(o.Message.At)), Color: p.colorOf(o.Message.From),
		Extra: team.JSONObject{{Key: "msgV", Value: msgV}}}
	b.entries = append(b.entries, e)
	b.sent.Marks = append(b.sent.Marks, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Injected,
		Evidence: evidence + p.native.team(), IfStates: []team.DeliveryState{team.Posted, team.Mailed, team.Held}})
	if s, ok := p.here(ledger.MirrorStop, o.Message.RequestID); ok && o.Message.RequestID != "" {
		b.sent.Stops = append(b.sent.Stops, s.There)
	}
}

// addEnded answers for members that have ended without an answer of their own.
func (p *pass) addEnded(ctx context.Context, b *batch, waiting []ledger.Outgoing) error {
	for _, s := range p.of(ledger.MirrorStop) {
		var d stopData
		if err := json.Unmarshal(s.Data, &d); err != nil {
			return err
		}
		said := slices.ContainsFunc(waiting, func(o ledger.Outgoing) bool { return o.Message.RequestID == s.Here })
		m, err := p.led().MemberBySession(ctx, d.Session)
		if err != nil {
			return err
		}
		if said || m.RemovedAt == 0 && m.Observed.Alive() {
			continue
		}
		e, err := inbox.FrameEntry(d.There, m.Color, inbox.ShutdownApproved{RequestID: s.There, From: d.There,
			Timestamp: inbox.Timestamp(time.Now())}, time.Now())
		if err != nil {
			return err
		}
		e.ID, e.Type, e.Extra = team.NewUUID(), "message", team.JSONObject{{Key: "msgV", Value: msgV}}
		b.entries = append(b.entries, e)
		b.sent.Stops = append(b.sent.Stops, s.There)
	}
	return nil
}

// fromThere reports whether a sender is a native member.
func (p *pass) fromThere(name string) bool {
	i := slices.IndexFunc(p.members, func(m ledger.Member) bool { return m.Name == name })
	if i < 0 {
		return false
	}
	r, ok := p.here(ledger.MirrorMember, p.members[i].SessionKey)
	return ok && !r.Ours
}

func (p *pass) senderThere(name string) string {
	for _, m := range p.members {
		if m.Name != name {
			continue
		}
		if r, ok := p.here(ledger.MirrorMember, m.SessionKey); ok {
			return r.There
		}
	}
	return name
}

func (p *pass) colorOf(name string) string {
	i := slices.IndexFunc(p.members, func(m ledger.Member) bool { return m.Name == name })
	if i < 0 {
		return ""
	}
	return p.members[i].Color
}

// wakeFirst marks a native teammate as active before it gets mail: otherwise it would do so itself
// when it wakes up, in place and without a lock, while another part of it reads the file.
func (p *pass) wakeFirst(ctx context.Context, there string) error {
	m := p.cfg.Member(there)
	if m == nil || isLead(p.cfg, *m) || m.IsActive != nil && *m.IsActive {
		return nil
	}
	return p.native.editConfig(ctx, func(cfg *team.Config) bool {
		_, changed := cfg.SetMemberActive(there, true)
		p.cfg = cfg
		return changed
	})
}

// deliver adds a batch to a native mailbox: all or nothing, with a known outcome.
func (p *pass) deliver(ctx context.Context, box *inbox.Box, there string, b batch) error {
	draft, err := box.Draft()
	if err != nil {
		return err
	}
	r := p.row(ledger.MirrorDraft, draft, there)
	if r.Data, err = json.Marshal(b.sent); err != nil {
		return err
	}
	if err := p.led().Mirror(ctx, []ledger.Mirrored{r}, nil); err != nil {
		_, rerr := box.Undrafted(draft)
		return errors.Join(err, rerr)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*lockWait)
	defer cancel()
	added, err := box.AddBy(ctx, draft, b.entries, mayAdd(p.bursts))
	if err != nil || !added {
		if serr := p.settle(ctx, r); serr != nil {
			return joinErrs(err, serr)
		}
		if err == nil {
			p.sayWaits(there)
		}
		return err
	}
	if len(b.entries) > 0 {
		p.say(NoteMailThere, there, fmt.Sprintf("%d messages", len(b.entries)))
	}
	return p.settle(ctx, r)
}

func (p *pass) sayWaits(there string) {
	p.sayOnce(NoteWaits, there, "it has mail that it has not read, or not begun with: what is sent to it waits until then")
}

// settle records the outcome of a draft.
func (b *bridge) settle(ctx context.Context, r ledger.Mirrored) error {
	box, err := b.box(r.Here)
	if err != nil {
		return err
	}
	delivered, err := box.Undrafted(r.There)
	if err != nil {
		return err
	}
	drop := []ledger.Mirrored{r}
	if delivered {
		var d draftData
		if err := json.Unmarshal(r.Data, &d); err != nil {
			return err
		}
		if _, err := b.led().MarkMany(ctx, d.Marks); err != nil {
			return err
		}
		for _, s := range d.Stops {
			drop = append(drop, b.row(ledger.MirrorStop, s, ""))
		}
	}
	return b.led().Mirror(ctx, nil, drop)
}

// settleDrafts settles the drafts of a killed bridge.
func (b *bridge) settleDrafts(ctx context.Context) error {
	rows, err := b.led().Mirrored(ctx, b.id)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Kind != ledger.MirrorDraft {
			continue
		}
		if err := b.settle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
