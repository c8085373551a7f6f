package tool

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// Reading has two steps, so that a killed reader loses no message: InboxTake returns the unread
// mail and leaves it unread, and InboxAck marks what the reader has confirmed. Unconfirmed mail is
// returned again, with the same id.

// Inbox reads a mailbox without marking anything. A member without mail has an empty one.
func (t *Team) Inbox(ctx context.Context, agent string, unreadOnly bool) (InboxOut, error) {
	m, err := t.Member(ctx, agent)
	if err != nil {
		return InboxOut{}, err
	}
	entries, err := t.mailOf(ctx, m, unreadOnly)
	return InboxOut{Agent: m.Name, Entries: t.inboxEntries(ctx, m.Name, entries, unreadOnly)}, err
}

// mailOf reads a member's mailbox, including mail that was posted to the member and not yet
// written there. It repairs a damaged file first.
func (t *Team) mailOf(ctx context.Context, m ledger.Member, unreadOnly bool) ([]inbox.Entry, error) {
	mailer := t.mailer(Caller{})
	box, err := mailer.Box(m.Name)
	if err != nil {
		return nil, err
	}
	// If the mailbox cannot be written, as on a full disk, the rest comes from the ledger.
	uncollected := mailer.Collect(ctx, m)
	read := box.Entries
	if unreadOnly {
		read = box.Unread
	}
	entries, err := t.mended(ctx, m, func() ([]inbox.Entry, error) { return read(ctx) })
	if err != nil || uncollected == nil {
		return entries, err
	}
	posted, err := t.Ledger.PostedTo(ctx, m.SessionKey)
	for _, p := range posted {
		e := mail.EntryOf(p)
		if !slices.ContainsFunc(entries, func(x inbox.Entry) bool { return x.ID == e.ID }) {
			entries = append(entries, e)
		}
	}
	return entries, err
}

// mended reads a mailbox; if it is damaged, it repairs it, restores lost entries from the ledger,
// and reads again.
func (t *Team) mended(ctx context.Context, m ledger.Member, read func() ([]inbox.Entry, error)) ([]inbox.Entry, error) {
	entries, err := read()
	var damaged *inbox.CorruptError
	if !errors.As(err, &damaged) {
		return entries, err
	}
	if err := t.mailer(Caller{Name: m.Name}).Restore(ctx, m); err != nil {
		return entries, errors.Join(damaged, err)
	}
	_, err = t.Ledger.Event(ctx, ledger.Event{What: team.EventMailboxRepaired, ID: m.Name, After: filepath.Base(damaged.Moved)})
	if err != nil {
		return entries, err
	}
	return read()
}

// InboxPeek returns the caller's own unread mail, and leaves it unread.
func (t *Team) InboxPeek(ctx context.Context, c Caller) (InboxOut, error) {
	in, err := t.Inbox(ctx, c.Name, true)
	if err != nil {
		return in, err
	}
	return t.prompted(ctx, c, in), nil
}

// InboxTake is InboxPeek for a reader that confirms mail with InboxAck. Requests that others have
// written to the lead's mailbox file are queued first, since an entry may be removed from the file
// once it is read.
func (t *Team) InboxTake(ctx context.Context, c Caller) (InboxOut, error) {
	if c.Name == team.LeadName {
		if err := t.TakeAsked(ctx); err != nil && !refusal(err) {
			return InboxOut{}, err
		}
	}
	return t.InboxPeek(ctx, c)
}

// maxMarks bounds the deliveries marked in one transaction, which blocks other writers.
const maxMarks = 5000

// InboxAck marks mail of the caller as read, in the ledger and then in the mailbox file, by the
// ids of its entries (InboxEntry.ID). evidence says how that is known. Mail that is already marked
// is not an error; an id that is neither in the mailbox nor of a message to the caller is CodeNotFound
// (message_not_found), and then nothing is marked.
func (t *Team) InboxAck(ctx context.Context, c Caller, evidence string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	got, err := t.Ledger.Received(ctx, c.Name, ids)
	if err != nil {
		return err
	}
	var marks []ledger.DeliveryMark
	var foreign []string // of programs without the ledger
	for _, id := range ids {
		if got[id].Sent {
			marks = append(marks, ledger.DeliveryMark{MessageID: id, Recipient: c.Name, State: team.Read, Evidence: evidence})
		} else {
			foreign = append(foreign, id)
		}
	}
	box, err := t.mailer(c).Box(c.Name)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		entries, err := box.Entries(ctx)
		if err != nil {
			return err
		}
		there := make(map[string]bool, len(entries))
		for _, e := range entries {
			there[e.Key()] = true
		}
		if i := slices.IndexFunc(foreign, func(id string) bool { return !there[id] }); i >= 0 {
			return team.Errorf(team.CodeNotFound, "no message %q in the mailbox of %s", foreign[i], c.Name).
				WithReason(team.ReasonMessageNotFound).WithHint("the ids are the msg_id of each entry of \"teamctl inbox --json\"")
		}
	}
	led := t.as(c)
	for part := range slices.Chunk(marks, maxMarks) {
		if _, err := led.MarkMany(ctx, part); err != nil {
			return err
		}
	}
	_, err = box.MarkRead(ctx, ids...)
	return err
}

// readerWait bounds the wait for another InboxConsume of the same mailbox.
const readerWait = 30 * time.Second

// InboxConsume calls give with the caller's unread mail, and marks that mail as read when give
// returns nil. After an error, or a kill before give returns, all of it stays unread. Consumers of
// one mailbox run one at a time, so that no two get the same message. CodeTimeout (mailbox_read):
// another consumer does not return.
func (t *Team) InboxConsume(ctx context.Context, c Caller, give func(InboxOut) error) error {
	m, err := t.Ledger.Member(ctx, c.Name)
	if err != nil {
		return err
	}
	box, err := t.mailer(c).Box(m.Name)
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, readerWait)
	lock, err := box.LockReader(wait)
	cancel()
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return team.Errorf(team.CodeTimeout, "another program is reading the mailbox of %s and has not finished", m.Name).
			WithReason(team.ReasonMailboxRead).WithHint("\"teamctl inbox --unread\" shows the mail and leaves it unread")
	case err != nil:
		return err
	}
	defer func() { _ = lock.Unlock() }() // the kernel releases it in any case
	in, err := t.InboxTake(ctx, c)
	if err != nil {
		return err
	}
	if err := give(in); err != nil {
		return err
	}
	return t.InboxAck(ctx, c, "consumed by "+c.Name, in.IDs()...)
}

// IDs returns the ids of the entries.
func (in InboxOut) IDs() []string {
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.ID
	}
	return ids
}

// InboxGiven records that the agent has got mail which the supervisor or a hook would deliver
// otherwise: they look for the message in the conversation before they deliver it.
func (t *Team) InboxGiven(ctx context.Context, c Caller, ids []string) error {
	m, err := t.Ledger.Member(ctx, c.Name)
	if err != nil || team.KindOf(m.Spec.Agent).External || team.KindOf(m.Spec.Agent).ReadsMailbox {
		return err
	}
	marks := make([]ledger.DeliveryMark, len(ids))
	for i, id := range ids {
		marks[i] = ledger.DeliveryMark{MessageID: id, Recipient: m.Name, State: team.Injected, Evidence: "returned to " + m.Name,
			IfStates: []team.DeliveryState{team.Mailed, team.Held}, IfKnown: true}
	}
	_, err = t.as(c).MarkMany(ctx, marks)
	return err
}

// prompted adds the prompt, if it can be made: the mail itself matters more.
func (t *Team) prompted(ctx context.Context, c Caller, in InboxOut) InboxOut {
	if prompt, err := t.Conversation(ctx, c, in.Entries); err == nil {
		in.Prompt = prompt
	}
	return in
}

// received returns a lookup, by id, of the ledger's data about messages in a mailbox. If the
// ledger cannot be read, every entry with an id counts as known, without further data.
func (t *Team) received(ctx context.Context, owner string, ids []string) func(id string) (got ledger.Received, known bool) {
	all, err := t.Ledger.Received(ctx, owner, slices.DeleteFunc(ids, func(id string) bool { return id == "" }))
	return func(id string) (ledger.Received, bool) {
		got, ok := all[id]
		return got, ok || err != nil && id != ""
	}
}

// inboxEntries combines entries with the ledger's data, for open reads without entries that the
// ledger has dropped.
func (t *Team) inboxEntries(ctx context.Context, owner string, entries []inbox.Entry, open bool) []InboxEntry {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	received := t.received(ctx, owner, ids)
	out := make([]InboxEntry, 0, len(entries))
	for _, e := range entries {
		x := InboxEntry{
			From: e.From, Text: e.Text, Summary: e.Summary, Timestamp: e.Timestamp,
			Color: e.Color, Read: e.Read, ID: e.Key(), Kind: string(team.KindMessage),
			MayBeKnown: e.MayBeKnown(),
		}
		got, known := received(e.ID)
		if open && got.State == team.Dropped {
			continue
		}
		kind := team.Kind("")
		if got.Sent && strings.EqualFold(got.Message.From, e.From) {
			kind, x.Verified = got.Message.Kind, got.Message.Text == e.Text
		}
		// A member may write any text: a message from the ledger has the kind with which it was
		// posted. Entries of other programs have only their text.
		if f, ok := inbox.Parse(e.Text); ok && (kind == f.Kind() || !known) {
			x.Kind, x.Frame = string(f.Kind()), json.RawMessage(e.Text)
		}
		out = append(out, x)
	}
	return out
}
