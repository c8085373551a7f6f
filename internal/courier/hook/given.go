package hook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// maxGiven is the maximum number of characters in one answer for programs that accept more; the
// rest goes with the next answer. A single message may be longer.
const maxGiven = 64 * 1024

// given is the content of given.json: messages that were handed over and whose state is not final.
type given struct {
	Handed []handed `json:"handed"`
	// Told are messages too long for an answer, of which the generation was notified.
	Told           []string `json:"told,omitempty"`
	ToldGeneration string   `json:"told_generation,omitempty"`
	// Kept is the number of consecutive turn ends at which a hook has continued the turn.
	Kept int `json:"kept,omitempty"`
	// Said is the digest of the model's answer when a hook last continued the turn.
	Said string `json:"said,omitempty"`
}

// handed is a message that was handed over.
type handed struct {
	ID           string    `json:"id"`
	Generation   string    `json:"generation"`
	Conversation string    `json:"conversation"`
	Event        string    `json:"event"`
	At           time.Time `json:"at"`
	From         int64     `json:"from"` // length of the transcript before the answer
	Out          bool      `json:"out"`  // the answer was written
	queued       bool      // the program has it in its own queue
	noted        bool      // the program has it in the conversation, and its model has not answered
	kept         bool      // noted, and given to an earlier process
	Lost         bool      `json:"lost"` // the conversation was compacted before there was evidence that it was read
}

func givenFile(b team.Bundle) string { return filepath.Join(string(b), "given.json") }

func readGiven(b team.Bundle) (g given) {
	if data, err := regular.ReadFile(givenFile(b)); err == nil {
		_ = json.Unmarshal(data, &g) // without the file the messages are given again
	}
	return g
}

func (r *run) writeGiven(g given) error {
	data, err := json.Marshal(g)
	if err == nil {
		err = atomicfile.Write(givenFile(r.bundle), data, 0o600, false)
	}
	return err
}

// digest represents a text in given.json.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// find returns the entry of a message, nil if there is none.
func (g *given) find(id string) *handed {
	i := slices.IndexFunc(g.Handed, func(h handed) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	return &g.Handed[i]
}

// knownAlready precedes a message that was handed over before.
const knownAlready = "(You may know the next message already: it was handed to you once before, and nothing shows that it arrived.)"

// hand gives mail with this hook's answer: as many messages as fit, in order.
func (r *run) hand(ctx context.Context, t *tool.Team, waiting []ledger.Outgoing) (bool, error) {
	g := readGiven(r.bundle)
	if g.ToldGeneration != r.gen {
		g.Told, g.ToldGeneration = nil, r.gen
	}
	if !adapter.EndsTurn(r.CLI, r.Event) {
		g.Kept = 0
	} else if most := adapter.EndsKept(r.CLI, r.version); most > 0 && g.Kept >= most {
		return false, nil // the program would ignore it
	}
	most := adapter.MostGiven(r.CLI, r.Event, r.version)
	size := 0
	var texts, ids []string
	var marks []ledger.DeliveryMark
	for i, o := range waiting {
		if o.Delivery.State == team.Posted {
			continue // its poster writes it to the mailbox in a moment
		}
		m := mail.Of(ctx, t.Ledger, o.Message)
		text := m.Text
		if len(texts) > 0 {
			text = strings.TrimPrefix(text, inbox.Notice+"\n\n")
		}
		if o.Delivery.State.HandedOver() || g.find(o.Message.ID) != nil {
			text = knownAlready + "\n\n" + text
		}
		need := adapter.Characters(r.CLI, r.Event, r.version, text+"\n\n")
		if size+need > min(most, maxGiven) && (len(texts) > 0 || need > most) {
			if told := r.waits(&g, o, len(waiting)-i, most-size); told != "" {
				texts = append(texts, told)
			}
			break
		}
		size += need
		texts, ids = append(texts, text), append(ids, m.ID)
		marks = append(marks, ledger.DeliveryMark{MessageID: m.ID, Recipient: o.Delivery.Recipient, State: team.Injected,
			Evidence: fmt.Sprintf("hook %s of %s in %s, generation %s", r.Event, r.CLI, r.hook.Conversation, r.gen)})
	}
	if len(texts) == 0 {
		return false, nil
	}
	reply, ok := adapter.GiveMail(r.CLI, r.Event, r.version, strings.Join(texts, "\n\n"))
	if !ok {
		return false, team.Errorf(team.CodeInternal, "%d messages for %s fit and do not fit into the answer of %s", len(ids), r.name, r.Event)
	}
	if adapter.EndsTurn(r.CLI, r.Event) {
		g.Kept++
		g.Said = digest(r.hook.Answer)
	}
	// From here on the hand-over must complete: what is claimed is given, or found unclaimed later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(r.within, giveWithin))
	defer cancel()
	from := r.transcriptSize()
	g.Handed = slices.DeleteFunc(g.Handed, func(h handed) bool { return slices.Contains(ids, h.ID) })
	for _, id := range ids {
		g.Handed = append(g.Handed, handed{ID: id, Generation: r.gen, Conversation: r.hook.Conversation, Event: r.Event, At: r.now, From: from})
	}
	if err := r.writeGiven(g); err != nil {
		return false, err
	}
	if _, err := t.Ledger.MarkMany(ctx, marks); err != nil {
		return false, err
	}
	if err := r.Write(reply); err != nil {
		return true, err
	}
	for _, id := range ids {
		g.find(id).Out = true
	}
	err := r.writeGiven(g)
	box, berr := inbox.Open(t.Layout.Inboxes(), t.Layout.Locks(), r.name)
	if berr == nil && len(ids) > 0 {
		_, berr = box.MarkRead(ctx, ids...)
	}
	return true, firstError(err, berr)
}

// remindText wakes an agent whose conversation has mail that its model has not answered.
const remindText = "Mail from your team was handed to you before your program was started again, and your conversation has it. Act on it now if you have not."

// remind wakes an agent that was resumed with mail which its model has not answered. The mail is not
// given again: the answer shows whether the conversation has it. What it lacks then is given again.
func (r *run) remind(pending []handed) (bool, error) {
	g, kept := readGiven(r.bundle), false
	for _, h := range pending {
		if was := g.find(h.ID); h.kept && was != nil {
			was.Generation, was.At, was.Out, kept = r.gen, r.now, true, true
		}
	}
	reply, ok := adapter.GiveMail(r.CLI, r.Event, r.version, remindText)
	if !kept || !ok {
		return false, nil
	}
	if err := r.writeGiven(g); err != nil {
		return false, err
	}
	return true, r.Write(reply)
}

// turnEnds resets the counter when a turn ends for good, or another begins.
func (r *run) turnEnds() error {
	if !adapter.EndsTurn(r.CLI, r.Event) && !adapter.BeginsTurn(r.CLI, r.Event) {
		return nil
	}
	g := readGiven(r.bundle)
	if g.Kept == 0 {
		return nil
	}
	g.Kept = 0
	return r.writeGiven(g)
}

// waits returns a notice about messages that do not fit although the event allows more text: the
// first one is too long for it. It returns "" if the agent was already notified, or at the end of
// a turn, where the message will come.
func (r *run) waits(g *given, o ledger.Outgoing, n, room int) string {
	id := o.Message.ID
	if adapter.EndsTurn(r.CLI, r.Event) || r.Event == adapter.Wait || slices.Contains(g.Told, id) {
		return ""
	}
	text := fmt.Sprintf("%s\n\nA message of %d bytes from %q (message_id %q) is too long to be shown here. It comes by itself when your turn ends%s; InboxRead shows it now.",
		inbox.Notice, len(o.Message.Text), o.Message.From, id, map[bool]string{true: fmt.Sprintf(", with %d more", n-1)}[n > 1])
	if adapter.Characters(r.CLI, r.Event, r.version, text) > room {
		return ""
	}
	g.Told = append(g.Told, id)
	return text
}
