package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// MessageInfo is a message with its receipts.
type MessageInfo struct {
	ledger.Message
	Deliveries []ledger.Delivery `json:"deliveries"`
	Replies    []string          `json:"replies"` // ids of the messages that answer it
	History    []ledger.Event    `json:"history"` // history of each delivery
}

// MessageShow returns how far a message has come for each recipient, with times and evidence. id
// may be a prefix.
func (t *Team) MessageShow(ctx context.Context, id string) (MessageInfo, error) {
	m, err := t.Ledger.FindMessage(ctx, id)
	if err != nil {
		return MessageInfo{}, err
	}
	info := MessageInfo{Message: m, Replies: []string{}}
	if info.Deliveries, err = t.receipts(ctx, m.ID); err != nil {
		return info, err
	}
	replies, err := t.Ledger.Messages(ctx, ledger.MessageFilter{Parent: m.ID})
	if err != nil {
		return info, err
	}
	for _, r := range replies {
		info.Replies = append(info.Replies, r.ID)
	}
	info.History, err = t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{ID: m.ID, What: team.MessageEvents})
	return info, err
}

// receipts returns the deliveries of a message, after checking what recipients have marked in
// their mailbox files themselves.
func (t *Team) receipts(ctx context.Context, id string) ([]ledger.Delivery, error) {
	ds, err := t.Ledger.Deliveries(ctx, id)
	if err != nil {
		return nil, err
	}
	var marks []ledger.DeliveryMark
	for _, d := range ds {
		// A channel marks the entry of a message that it has delivered, whatever becomes of it: that
		// is not the agent's own mark.
		if !ledger.Reached(d.State, team.Mailed) || ledger.Reached(d.State, team.Injected) {
			continue
		}
		read, err := t.readInFile(ctx, d)
		if err != nil {
			return ds, err
		}
		if read {
			marks = append(marks, ledger.DeliveryMark{MessageID: id, Recipient: d.Recipient, State: team.Read,
				Evidence: "marked as read in the mailbox file",
				// A channel may have delivered and marked it since the check.
				IfStates: []team.DeliveryState{team.Mailed}})
		}
	}
	if _, err := t.Ledger.MarkMany(ctx, marks); err != nil {
		return ds, err
	}
	return t.Ledger.Deliveries(ctx, id)
}

// readInFile is markedRead after the mailbox was reconciled, if the message is missing.
func (t *Team) readInFile(ctx context.Context, d ledger.Delivery) (bool, error) {
	to, err := t.Ledger.MemberBySession(ctx, d.Session)
	if err == nil && to.RemovedAt == 0 {
		err = t.mailer(Caller{}).MendFor(ctx, to, d.MessageID)
	}
	if err != nil && !team.IsCode(err, team.CodeUnavailable) && !team.IsCode(err, team.CodeTimeout) {
		return false, err
	}
	return t.markedRead(ctx, d)
}

// markedRead reports whether the mailbox has a marked entry for the message. A missing entry says
// nothing.
func (t *Team) markedRead(ctx context.Context, d ledger.Delivery) (bool, error) {
	box, err := t.mailer(Caller{}).Box(d.Recipient)
	if err != nil {
		return false, err
	}
	entries, err := box.Entries(ctx)
	var damaged *inbox.CorruptError
	if errors.As(err, &damaged) {
		return false, nil // repaired: the supervisor restores missing entries
	}
	for _, e := range entries {
		if e.ID == d.MessageID {
			return e.Read, nil
		}
	}
	return false, err
}

// Await waits until a message has reached want for every recipient. Errors: CodeConflict (dropped)
// if that cannot happen, CodeTimeout with the missing recipients. The deliveries are returned in
// any case.
func (t *Team) Await(ctx context.Context, id string, want team.DeliveryState, timeout time.Duration) (ds []ledger.Delivery, err error) {
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	wait, cancel := bounded(ctx, timeout)
	defer cancel()
	ledgerChanges, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	boxes, closeBoxes, err := t.watchBoxes(ctx, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeBoxes()) }()
	last := false
	for {
		ds, err = t.receipts(context.WithoutCancel(ctx), id)
		if err != nil {
			return ds, err
		}
		missing, err := awaited(ds, want)
		if len(missing) == 0 || err != nil {
			return ds, err
		}
		if last {
			return ds, team.Errorf(team.CodeTimeout, "not %s after %s by %s", want, timeout, strings.Join(missing, ", ")).
				WithHint("teamctl message show " + id)
		}
		select {
		case <-ledgerChanges:
		case <-boxes:
		case <-wait.Done():
			if last = over(ctx, wait, timeout); !last {
				return ds, context.Cause(ctx)
			}
		}
	}
}

// awaited returns the recipients that have not reached want; an error says that one never will.
func awaited(ds []ledger.Delivery, want team.DeliveryState) (missing []string, err error) {
	var dropped []string
	for _, d := range ds {
		switch {
		case d.State == team.Dropped:
			dropped = append(dropped, fmt.Sprintf("%s (%s)", d.Recipient, d.Reason))
		case !ledger.Reached(d.State, want):
			missing = append(missing, fmt.Sprintf("%s (%s)", d.Recipient, d.State))
		}
	}
	if len(dropped) > 0 {
		return missing, team.Errorf(team.CodeConflict, "the message was dropped: %s", strings.Join(dropped, ", ")).WithReason(team.ReasonDropped)
	}
	return missing, nil
}

// watchBoxes signals possible changes to a recipient's mailbox.
func (t *Team) watchBoxes(ctx context.Context, id string) (<-chan struct{}, func() error, error) {
	ds, err := t.Ledger.Deliveries(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	w, err := inbox.WatchBy(ctx, t.Watch, t.Layout.Inboxes())
	if err != nil {
		return nil, nil, err
	}
	if len(ds) == 1 {
		return w.Changes(ds[0].Recipient), w.Close, nil
	}
	any := make(chan struct{}, 1)
	ends := make(chan struct{}, len(ds))
	for _, d := range ds {
		ch := w.Changes(d.Recipient)
		go func() {
			defer func() { ends <- struct{}{} }()
			for {
				select {
				case <-ch:
				case <-w.Done():
					return
				}
				select {
				case any <- struct{}{}:
				default:
				}
			}
		}()
	}
	return any, func() error {
		err := w.Close()
		for range ds {
			<-ends
		}
		return err
	}, nil
}

// ParseWait parses what a sender may wait for.
func ParseWait(s string) (team.DeliveryState, error) {
	switch d := team.DeliveryState(s); d {
	case team.Mailed, team.Injected, team.Accepted, team.Read, team.Answered:
		return d, nil
	default:
		return "", team.Errorf(team.CodeInvalid, "cannot wait for %q", s).WithHint("accepted, read or answered")
	}
}
