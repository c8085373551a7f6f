package supervisor

import (
	"context"
	"time"
)

// publishing keeps config.json in step with the ledger, outside the loop. Many
// changes that come while it is being written are one more writing, and a large
// roster that keeps changing takes a third of a core at most. Whoever waits for an
// answer about a change gets it when the file has the change.
type publishing struct {
	wanted  bool // something has changed since the last writing began
	writing bool
	took    time.Duration // of the last writing
	now     []func()      // answers that wait for the writing under way
	next    []func()      // and for the one after
	file    configFile
}

// publishRest is how many times as long as a writing took is rested after it.
const publishRest = 2

// publish brings config.json up to date with the ledger, soon.
func (s *Supervisor) publish() {
	s.pub.wanted = true
	s.pump()
}

// whenPublished runs an answer once config.json has everything that publish was
// called for until now.
func (s *Supervisor) whenPublished(answer func()) {
	switch {
	case s.pub.wanted:
		s.pub.next = append(s.pub.next, answer)
	case s.pub.writing:
		s.pub.now = append(s.pub.now, answer)
	default:
		answer()
	}
}

// pump begins a writing where one is wanted and none is under way.
func (s *Supervisor) pump() {
	if !s.pub.wanted || s.pub.writing || s.timers["publish"] != nil {
		return
	}
	s.pub.wanted, s.pub.writing = false, true
	s.pub.now, s.pub.next = s.pub.next, nil
	s.step(func(context.Context) message {
		began := time.Now()
		s.publishNow()
		return published(time.Since(began))
	})
}

// publishNow writes config.json. Once begun it is brought to its end.
func (s *Supervisor) publishNow() {
	ctx, cancel := s.write()
	defer cancel()
	if err := s.pub.file.publish(ctx, s.cfg.Layout, s.cfg.Ledger); err != nil {
		s.log.Error("publish config.json", "err", err)
	}
}

// published is the end of a writing that took so long.
type published time.Duration

func (d published) apply(s *Supervisor) {
	s.pub.writing, s.pub.took = false, time.Duration(d)
	answers := s.pub.now
	s.pub.now = nil
	for _, f := range answers {
		f()
	}
	s.after("publish", publishRest*s.pub.took, publishAgain{})
}

// publishAgain is the end of the rest.
type publishAgain struct{}

func (publishAgain) apply(s *Supervisor) {
	delete(s.timers, "publish")
	s.pump()
}

// lastPublish is called when the loop ends: nothing wanted stays unwritten, no
// answer ungiven.
func (s *Supervisor) lastPublish() {
	if s.pub.wanted || s.pub.writing {
		s.publishNow()
	}
	for _, f := range append(s.pub.now, s.pub.next...) {
		f()
	}
}
