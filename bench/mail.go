package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// mail: messages from "post" to the moment when they stand in the mailbox, by as
// many writers, on mailboxes of different histories; and until a reader that
// waits has them.
var mailBench = benchmark{name: "mail", title: "Messages", run: runMail, note: mailNote}

const mailNote = "A message is more than the claim on bare SQLite with which the goal compares it: two operations of the ledger, posted and " +
	"mailed, each in a group with those of others, and in between an append under the lock of the one mailbox that all want here. Who has " +
	"the lock brings what all have posted; the others find theirs mailed when it is their turn: of theirs the time is known to a millisecond, and rounded up."

const (
	goalMailP50  = 2 * time.Millisecond
	goalMailP99  = 20 * time.Millisecond
	goalHistory  = 1.5 // x a history of 10
	goalPosted   = 0.5 // of claims on bare SQLite, 16 a commit
	goalWakeP50  = 500 * time.Microsecond
	mailEach     = 60 // messages of a writer; a run has a cap
	wakeMessages = 100
)

func childPost(ctx context.Context, a childArgs) (func() (time.Duration, bool, error), func() error, error) {
	l := team.Home{Dir: a.Home}.Team("b")
	led, closeDB, err := openLedger(ctx, l, a.Direct)
	if err != nil {
		return nil, nil, err
	}
	writer, via := control.Writer(l, ledger.Direct(led.DB()))
	w := &stamped{Writer: writer}
	m := mail.Mailer{Layout: l, Ledger: ledger.New(led.DB(), w), Via: via}
	return func() (time.Duration, bool, error) {
		w.visible = time.Time{}
		_, ds, err := m.Post(ctx, ledger.NewMessage{
			Kind: team.KindInfo, From: memberName(a.Number), To: a.Session, Text: "a message of an ordinary length, as people write them", Summary: "a message",
		})
		if err == nil && (len(ds) != 1 || ds[0].State != team.Mailed) {
			err = fmt.Errorf("not mailed: %+v", ds)
		}
		if now := time.Now(); err == nil && w.visible.IsZero() { // another has mailed it, and has said in which millisecond
			if w.visible = time.UnixMilli(ds[0].At + 1); now.Before(w.visible) {
				w.visible = now
			}
		}
		return w.visible.Sub(w.posted), true, err
	}, closeDB, nil
}

// stamped notes when a message was durable, and when it stood in the mailbox if this
// process has mailed it: then its mark is written.
type stamped struct {
	ledger.Writer
	posted, visible time.Time
}

func (s *stamped) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	if op.Name == "delivery.mark" {
		s.visible = time.Now()
	}
	res, err := s.Writer.Write(ctx, op)
	if op.Name == "message.post" {
		s.posted = time.Now()
	}
	return res, err
}

func runMail(ctx context.Context, e env) (string, error) {
	rounds, counts, sizes := 3, []int{1, 2, 4, 8, 16}, []int{10, 1_000, 100_000}
	if e.quick {
		counts, sizes = []int{1, 16}, sizes[:1]
	}
	w, err := newWorld(ctx, e, "w", 20)
	if err != nil {
		return "", err
	}
	led, closeDB, err := w.open(ctx, true)
	if err != nil {
		return "", err
	}
	defer func() { _ = closeDB() }()
	for i, size := range sizes {
		if err := fillBox(ctx, w.layout, memberName(16+i), size); err != nil {
			return "", err
		}
	}
	stop, served, err := w.measured(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	type line struct {
		writers, history int
		rates            []float64
		times            []time.Duration
		spent            []float64 // processor time of the clients for a message, in us
		serving          []float64 // and of the supervisor
	}
	var lines []*line
	for _, n := range counts {
		for h := range sizes {
			lines = append(lines, &line{writers: n, history: h})
		}
	}
	var floors, grouped []float64
	for r := range rounds {
		floor, err := rawClaims(ctx, filepath.Join(e.dir, fmt.Sprintf("raw%d.db", r)), 1, claimSpan)
		if err != nil {
			return "", err
		}
		group, err := rawClaims(ctx, filepath.Join(e.dir, fmt.Sprintf("raw%dg.db", r)), 16, claimSpan)
		if err != nil {
			return "", err
		}
		floors, grouped = append(floors, floor), append(grouped, group)
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			if _, err := led.StartRun(ctx); err != nil { // each has its own cap
				return "", err
			}
			before, err := served()
			if err != nil {
				return "", err
			}
			res, err := crowd(ctx, "post", l.writers, childArgs{Home: w.layout.Home.Dir, For: 20 * time.Second, Most: mailEach, Session: memberName(16 + l.history)})
			if err != nil {
				return "", err
			}
			after, err := served()
			if err != nil {
				return "", err
			}
			ops, times, _ := sum(res)
			each := float64(max(ops, 1)) * float64(time.Microsecond)
			l.spent, l.serving = append(l.spent, float64(clientsCPU(res))/each), append(l.serving, float64(after-before)/each)
			busy := time.Duration(1)
			for _, c := range res {
				busy = max(busy, c.Busy)
			}
			l.rates, l.times = append(l.rates, float64(ops)/busy.Seconds()), append(l.times, times...)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Through the supervisor; the time is from \"posted\", durable in the ledger, to the entry in the file.\n\n", where(rounds))
	b.WriteString("| writers | history | messages/s | x commits of one process on SQLite | p50 ms | p99 ms | x history 10 | clients' us of processor | supervisor's | goal |\n|---|---|---|---|---|---|---|---|---|---|\n")
	first := map[int]time.Duration{}
	for _, l := range lines {
		if l.history == 0 {
			first[l.writers] = median(l.times)
		}
		x := float64(median(l.times)) / float64(first[l.writers])
		p50, p99 := median(l.times), quantile(l.times, 0.99)
		goal := reached(x <= goalHistory, fmt.Sprintf("<= %.1f x", goalHistory))
		if l.writers == 16 {
			posted := middle(l.rates) / middle(grouped)
			goal = reached(x <= goalHistory && posted >= goalPosted && p50 <= goalMailP50 && p99 <= goalMailP99, fmt.Sprintf("<= %.1f x, >= %.1f of 16 a commit (%.2f), p50 <= %v, p99 <= %v", goalHistory, goalPosted, posted, goalMailP50, goalMailP99))
		}
		fmt.Fprintf(&b, "| %d | %d | %.0f | %.2f | %s | %s | %.2f | %.0f | %.0f | %s |\n", l.writers, sizes[l.history], middle(l.rates), middle(l.rates)/middle(floors),
			ms(p50), ms(p99), x, middle(l.spent), middle(l.serving), goal)
	}
	wakes, err := wake(ctx, w.layout)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nA waiting reader is awake and has the message %s ms (p50), %s ms (p99) after it stands in the file: %s.\n",
		ms(median(wakes)), ms(quantile(wakes, 0.99)), reached(median(wakes) <= goalWakeP50, fmt.Sprintf("p50 <= %v", goalWakeP50)))
	return b.String(), nil
}

// fillBox makes a mailbox that has seen so many messages.
func fillBox(ctx context.Context, l team.Layout, agent string, n int) error {
	box, err := inbox.Open(l.Inboxes(), l.Locks(), agent)
	if err != nil {
		return err
	}
	for i := range n {
		if err := box.Append(ctx, inbox.Entry{From: "past", Text: fmt.Sprintf("message %d of the past", i), ID: team.NewUUID()}); err != nil {
			return err
		}
	}
	_, err = box.MarkAllRead(ctx)
	return err
}

// wake measures from the end of an append to the reader that has taken it.
func wake(ctx context.Context, l team.Layout) (times []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	box, err := inbox.Open(l.Inboxes(), l.Locks(), "waker")
	if err != nil {
		return nil, err
	}
	watcher, err := inbox.Watch(ctx, l.Inboxes())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	wakes := watcher.Changes("waker")
	got := make(chan time.Time)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-wakes:
			case <-ctx.Done():
				return
			}
			entries, err := box.Consume(ctx, 0, nil)
			if err != nil {
				return
			}
			for range entries {
				select {
				case got <- time.Now():
				case <-ctx.Done():
					return
				}
			}
		}
	})
	defer wg.Wait()
	defer cancel()
	sender, err := inbox.Open(l.Inboxes(), l.Locks(), "waker")
	if err != nil {
		return nil, err
	}
	for range wakeMessages {
		if err := sender.Append(ctx, inbox.Entry{From: "bench", Text: "wake up", ID: team.NewUUID()}); err != nil {
			return nil, err
		}
		began := time.Now()
		select {
		case at := <-got:
			times = append(times, max(at.Sub(began), 0))
		case <-ctx.Done():
			return nil, errors.New("the reader sleeps on")
		}
	}
	return times, nil
}
