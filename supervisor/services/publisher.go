package services

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/supervisor/loop"
)

// publishRest is how many times as long as a writing took is rested after it.
const publishRest = 2

// Publisher keeps config.json in step with the ledger, beside the loop. Many changes that come
// while it is being written are one more writing, and a large roster that keeps changing takes
// a third of a core at most. An answer about a change is given when the file has the change.
type Publisher struct {
	loop.Quiet
	team    loop.Team
	wanted  bool // something has changed since the last writing began
	writing bool
	now     []func() // answers that wait for the writing under way
	next    []func() // and for the one after
	file    publish.File
}

// NewPublisher returns the service.
func NewPublisher(t loop.Team) *Publisher { return &Publisher{team: t} }

// Ready publishes what has changed without a supervisor.
func (p *Publisher) Ready() { p.Publish() }

// Looked publishes what others have changed.
func (p *Publisher) Looked(roster bool) {
	if roster {
		p.Publish()
	}
}

// Publish brings config.json up to date with the ledger, soon.
func (p *Publisher) Publish() {
	p.wanted = true
	p.pump()
}

// When runs an answer once config.json has everything that Publish was called for until now.
func (p *Publisher) When(answer func()) {
	switch {
	case p.wanted:
		p.next = append(p.next, answer)
	case p.writing:
		p.now = append(p.now, answer)
	default:
		answer()
	}
}

// pump begins a writing where one is wanted and none is under way.
func (p *Publisher) pump() {
	if !p.wanted || p.writing || p.Bus.Armed("publish") {
		return
	}
	p.wanted, p.writing = false, true
	p.now, p.next = p.next, nil
	p.Bus.Go("publish", func(ctx context.Context) func() {
		began := time.Now()
		p.write(ctx)
		took := time.Since(began)
		return func() { p.written(took) }
	})
}

// write writes config.json. Once begun it is brought to its end.
func (p *Publisher) write(ctx context.Context) {
	ctx, cancel := loop.Writing(ctx)
	defer cancel()
	if err := p.file.Publish(ctx, p.team.Layout, p.team.Ledger); err != nil {
		p.team.Log.Error("publish config.json", "err", err)
	}
}

// written is called after a writing that took so long.
func (p *Publisher) written(took time.Duration) {
	p.writing = false
	answers := p.now
	p.now = nil
	for _, f := range answers {
		f()
	}
	p.Bus.After("publish", publishRest*took, p.pump)
}

// Close leaves nothing wanted unwritten and no answer ungiven.
func (p *Publisher) Close() {
	if p.wanted || p.writing {
		p.write(context.Background())
	}
	for _, f := range append(p.now, p.next...) {
		f()
	}
}
