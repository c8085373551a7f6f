package services

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/supervisor/loop"
)

// publishRest is the pause after a write, as a multiple of its duration.
const publishRest = 2

// Publisher keeps config.json up to date with the ledger, beside the loop. All changes during a
// write result in one more write, and a large roster that keeps changing takes at most a third of
// a core. The answer to a change is sent once the file has the change.
type Publisher struct {
	loop.Quiet
	team    loop.Team
	wanted  bool // something has changed since the last write began
	writing bool
	now     []func() // answers that wait for the running write
	next    []func() // answers that wait for the next one
	file    publish.File
}

// NewPublisher returns the service.
func NewPublisher(t loop.Team) *Publisher { return &Publisher{team: t} }

// Ready publishes changes made while no supervisor was running.
func (p *Publisher) Ready() { p.Publish() }

// Looked publishes changes made by other processes.
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

// When runs an answer once config.json has everything that Publish was called for so far.
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

// pump starts a write if one is needed and none is running.
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

// write writes config.json. It completes once begun.
func (p *Publisher) write(ctx context.Context) {
	ctx, cancel := loop.Writing(ctx)
	defer cancel()
	if err := p.file.Publish(ctx, p.team.Layout, p.team.Ledger); err != nil {
		p.team.Log.Error("publish config.json", "err", err)
	}
}

// written is called after a write with its duration.
func (p *Publisher) written(took time.Duration) {
	p.writing = false
	answers := p.now
	p.now = nil
	for _, f := range answers {
		f()
	}
	p.Bus.After("publish", publishRest*took, p.pump)
}

// Close writes pending changes and runs all waiting answers.
func (p *Publisher) Close() {
	if p.wanted || p.writing {
		p.write(context.Background())
	}
	for _, f := range append(p.now, p.next...) {
		f()
	}
}
