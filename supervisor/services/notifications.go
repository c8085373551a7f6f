package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// SettingNotify is the setting with a team's sinks, a list of sink.Parse texts.
// SettingWebURL is the setting with the address of the team's page, which notices lead to.
const (
	SettingNotify = "notify"
	SettingWebURL = "web.url"
)

// SettingTold is the setting with the sequence number of the last event that was reported to a
// sink. A supervisor reports later ones when it starts: the previous one may have been killed.
func SettingTold(spec string) string {
	sum := sha256.Sum256([]byte(spec))
	return "notify.told." + hex.EncodeToString(sum[:8])
}

// channelPerson is the channel for notices to the person at the machine.
const channelPerson = "person"

const (
	// maxOutside bounds the queue of notices; more are dropped.
	maxOutside = 100
	// company is how long a notice waits for others that come with it.
	company = time.Second
	// After a batch the next one goes out burstTime after the first notice of it. Burst
	// notices in that time are one.
	burst     = 5
	burstTime = 10 * time.Second
	// calm is how long nothing has to begin until all is done.
	calm = 5 * time.Second
)

// told is a notice with the facts that the gate needs.
type told struct {
	notice  sink.Notice
	wants   bool
	channel string
	seq     int64 // of its event
}

// Notifications reports to a team's sinks what waits for a person. A sink that hangs or fails
// delays no other.
type Notifications struct {
	loop.Quiet
	team    loop.Team
	key     string // of the team
	queue   []told // for all sinks
	began   time.Time
	recent  int               // notices that were told since began
	outbox  map[string][]told // what each sink has yet to be told
	sending map[string]bool
	did     bool // something has ended since all was done
}

// NewNotifications returns the service.
func NewNotifications(t loop.Team) *Notifications {
	return &Notifications{team: t, outbox: map[string][]told{}, sending: map[string]bool{}}
}

// Start reads the name of the team.
func (n *Notifications) Start(ctx context.Context, bus loop.Bus) error {
	n.Bus = bus
	row, err := n.team.Ledger.Team(ctx)
	n.key = row.Key
	return err
}

// Ready reports what a previous supervisor did not before it was killed.
func (n *Notifications) Ready() {
	n.Bus.Go("notify", func(ctx context.Context) func() {
		owed, err := n.owed(ctx)
		if err != nil && ctx.Err() == nil {
			n.team.Log.Warn("read what the sinks were told", "err", err)
		}
		return func() {
			for spec, list := range owed {
				n.outbox[spec] = append(list, n.outbox[spec]...)
				n.deliver(spec)
			}
		}
	})
}

// owed returns the notices after the last event that each sink was told.
func (n *Notifications) owed(ctx context.Context) (map[string][]told, error) {
	specs, err := n.specs(ctx)
	if err != nil || len(specs) == 0 {
		return nil, err
	}
	last, err := n.team.Ledger.LastEvent(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]told{}
	for _, spec := range specs {
		after := last
		ok, err := n.team.Ledger.Setting(ctx, SettingTold(spec), &after)
		if err != nil {
			return out, err
		}
		if !ok {
			continue
		}
		for _, what := range outside {
			list, err := n.team.Ledger.Events(ctx, after, 0, ledger.EventFilter{What: what})
			if err != nil {
				return out, err
			}
			for _, e := range list {
				if t, ok := noticeOf(n.key, e); ok && e.Seq <= last && sink.External(t.wants, t.channel) {
					out[spec] = append(out[spec], t)
				}
			}
		}
		slices.SortFunc(out[spec], func(a, b told) int { return int(a.seq - b.seq) })
		out[spec] = n.together(n.still(ctx, out[spec]), burst)
	}
	return out, nil
}

// Busy keeps the supervisor until everything is told.
func (n *Notifications) Busy() bool { return len(n.queue) > 0 || len(n.sending) > 0 }

// Event queues the notice of an event for the sinks. Messages between agents belong to the
// internal channel: they reach this point, and the gate stops them.
func (n *Notifications) Event(e ledger.Event) {
	n.watchEnd(e)
	if t, ok := noticeOf(n.key, e); ok && sink.External(t.wants, t.channel) { // the sinks ask the gate again; this check saves the work
		n.add(t)
	}
}

func (n *Notifications) add(t told) {
	if len(n.queue) >= maxOutside {
		return
	}
	n.queue = append(n.queue, t)
	if n.Bus.Armed("notify") {
		return
	}
	wait := company
	if since := time.Since(n.began); since >= burstTime {
		n.began, n.recent = time.Now(), 0
	} else if n.recent > 0 {
		wait = max(company, burstTime-since)
	}
	n.Bus.After("notify", wait, n.send)
}

// send passes the queue to the sinks.
func (n *Notifications) send() {
	batch := n.queue
	n.queue = nil
	n.recent += len(batch)
	many := n.recent >= burst
	n.Bus.Go("notify", func(ctx context.Context) func() {
		specs, err := n.specs(ctx)
		if err != nil && ctx.Err() == nil {
			n.team.Log.Warn("read the sinks", "err", err)
		}
		if len(specs) == 0 {
			return nil
		}
		batch := n.still(ctx, batch)
		if many {
			batch = n.together(batch, 2)
		}
		return func() {
			for _, spec := range specs {
				n.outbox[spec] = append(n.outbox[spec], batch...)
				n.deliver(spec)
			}
		}
	})
}

func (n *Notifications) specs(ctx context.Context) (specs []string, err error) {
	_, err = n.team.Ledger.Setting(ctx, SettingNotify, &specs)
	return specs, err
}

// still returns the notices of a batch that still hold, with their links: a request may have been
// answered, by a rule or by hand, and a member may wait for a request that has its own notice.
func (n *Notifications) still(ctx context.Context, batch []told) (out []told) {
	pending, err := n.team.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending})
	if err != nil {
		return batch // one notice too many is better than none
	}
	var base string
	if _, err := n.team.Ledger.Setting(ctx, SettingWebURL, &base); err != nil && ctx.Err() == nil {
		n.team.Log.Warn("read the address of the page", "err", err)
	}
	for _, t := range batch {
		switch t.notice.Kind {
		case sink.Approval:
			if !slices.ContainsFunc(pending, func(a ledger.Approval) bool { return fmt.Sprint(a.ID) == t.notice.ID }) {
				continue
			}
		case sink.Dialog:
			m, err := n.team.Ledger.Member(ctx, t.notice.ID)
			if err != nil || m.Observed != team.Running || m.Activity != team.Waiting ||
				slices.ContainsFunc(pending, func(a ledger.Approval) bool { return a.Session == m.SessionKey && approval.Answers(a, m) }) {
				continue
			}
		case sink.Mail:
			list, err := n.team.Ledger.Deliveries(ctx, t.notice.ID)
			if err == nil && !slices.ContainsFunc(list, func(d ledger.Delivery) bool { return d.State == team.Unknown && d.Recipient == t.notice.Select }) {
				continue // it has turned up
			}
		case sink.Task:
			if t.notice.What == team.EventTaskStranded {
				if short, err := stranded(ctx, n.team.Ledger); err == nil && short == nil {
					continue // somebody can take them now
				}
			}
		case sink.Member, sink.Merge, sink.Limit, sink.Budget, sink.Done, sink.Agent:
		}
		if base != "" {
			t.notice.Link = strings.TrimSuffix(base, "/") + "/t/" + url.PathEscape(n.key)
			if t.notice.Select != "" {
				t.notice.Link += "?select=" + url.QueryEscape(t.notice.Select)
			}
		}
		out = append(out, t)
	}
	return out
}

// together merges a batch of at least so many notices into one.
func (n *Notifications) together(batch []told, least int) []told {
	if len(batch) < least {
		return batch
	}
	titles := make([]string, len(batch))
	for i, t := range batch {
		titles[i] = strings.TrimPrefix(t.notice.Title, "teamctl "+n.key+": ")
	}
	one := batch[0]
	one.seq = batch[len(batch)-1].seq
	one.notice.ID, one.notice.Select, one.notice.Count = "", "", len(batch)
	one.notice.Link, _, _ = strings.Cut(one.notice.Link, "?")
	one.notice.Title = fmt.Sprintf("teamctl %s: %d things need you", n.key, len(batch))
	one.notice.Text = strings.Join(titles, "; ") + ": teamctl status --team " + n.key
	return []told{one}
}

// deliver sends a sink its queue.
func (n *Notifications) deliver(spec string) {
	batch := n.outbox[spec]
	if n.sending[spec] || len(batch) == 0 {
		return
	}
	delete(n.outbox, spec)
	n.sending[spec] = true
	n.Bus.Go("notify", func(ctx context.Context) func() {
		to, err := sink.Parse(spec)
		now := time.Now()
		for _, t := range batch {
			if err == nil && to.Takes(t.notice, now) {
				_, err = to.Deliver(ctx, run.BookOf(n.team.Layout), t.wants, t.channel, t.notice)
			}
			if err != nil && ctx.Err() == nil {
				n.failed(ctx, to, t, err)
				break // the rest of the batch would fail in the same way
			}
		}
		if ctx.Err() == nil {
			if err := n.team.Ledger.Set(ctx, SettingTold(spec), batch[len(batch)-1].seq); err != nil && ctx.Err() == nil {
				n.team.Log.Warn("write what a sink was told", "err", err)
			}
		}
		return func() {
			delete(n.sending, spec)
			n.deliver(spec)
		}
	})
}

func (n *Notifications) failed(ctx context.Context, to sink.Sink, t told, err error) {
	n.team.Log.Warn("tell outside", "sink", to.Masked(), "what", t.notice.What, "err", err)
	data, _ := json.Marshal(map[string]string{"sink": to.Masked(), "what": t.notice.What, "error": err.Error()})
	if _, err := n.team.Ledger.Event(ctx, ledger.Event{What: team.EventNotifyFailed, ID: t.notice.ID, Data: data}); err != nil {
		n.team.Log.Warn("log a failed notice", "err", err)
	}
}
