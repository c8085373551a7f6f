package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The program takes mail out of a mailbox within a second, and gives it to its model when the turn
// is over. The evidence is its record of the conversation, below projects in its configuration
// directory.

const (
	// recordWithin is how long a message may take from the mailbox to the record of a teammate
	// whose turn is over. After that the program has lost it.
	recordWithin = 30 * time.Second
	// recordTail is how much of a record's end is searched, and of its beginning for its owner.
	recordTail = 16 << 20
)

// takenAndLost is the reason for holding a message until it is given again.
const takenAndLost = "its program took it from the mailbox, and its conversation lacks it: it is given again"

// takenTwice is the reason for not giving a message a third time: a program whose record is not found
// would be given the same mail for ever.
const takenTwice = "its program took it from the mailbox twice, and no record of its conversation is found"

// knownAlready precedes a message that is given again.
const knownAlready = "(You may know the next message already: it was handed to you once before, and nothing shows that it arrived.)"

// inItsMailbox is the evidence of a handed over message, inItsMailboxAgain that of one given again.
const (
	inItsMailbox      = "in its mailbox in "
	inItsMailboxAgain = "again " + inItsMailbox
)

// record is what is known of a native member's conversation.
type record struct {
	adapter.Transcript
	found bool // there is a record
	ended bool // the last input was answered, and the turn is over
}

// holds reports whether the model has a text, in the frame that the program adds.
func (r record) holds(text string) bool {
	const end = "</teammate-message"
	for _, t := range []string{text, strings.ReplaceAll(text, end, `<\/teammate-message`)} {
		if r.Holds(">\n"+t+"\n"+end) || r.Holds(">\n"+knownAlready+"\n\n"+t+"\n"+end) {
			return true
		}
	}
	return false
}

// record reads the record of a native member. A member without one has not begun a turn, or keeps
// its record elsewhere or not at all.
func (b *bridge) record(cfg *team.Config, there string) (record, error) {
	files, err := filepath.Glob(filepath.Join(glob.Escape(b.native.dir), "projects", "*", "*.jsonl"))
	if err != nil {
		return record{}, err
	}
	var lines, last []byte
	var newest time.Time // a restarted teammate has another file
	found := false
	for _, file := range files {
		if there == team.LeadName {
			if cfg.LeadSessionID == "" || filepath.Base(file) != cfg.LeadSessionID+".jsonl" {
				continue
			}
		} else if owner, err := b.ownerOf(file); err != nil {
			return record{}, err
		} else if owner != team.AgentID(there, cfg.Name) {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			continue // it was removed
		}
		part, err := readTail(file, recordTail)
		if err != nil {
			return record{}, err
		}
		lines, found = append(lines, part...), true
		if at := bytes.LastIndex(part, []byte(`"type":"user"`)); at >= 0 && info.ModTime().After(newest) {
			newest, last = info.ModTime(), part[bytes.LastIndexByte(part[:at], '\n')+1:]
		}
	}
	now := adapter.ReadTranscript(adapter.Claude, last)
	return record{adapter.ReadTranscript(adapter.Claude, lines), found, len(last) == 0 || now.Ended || now.Interrupted}, nil
}

// ownerOf returns the owner of a conversation file: NAME@TEAM of a teammate, "" for others.
func (b *bridge) ownerOf(file string) (owner string, err error) {
	if owner, known := b.owners[file]; known {
		return owner, nil
	}
	f, err := regular.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", unsettled(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewReader(io.LimitReader(f, recordTail))
	for { // the first line of a conversation has the whole mail of its first turn
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return "", nil // for now: the conversation is still empty
		}
		if err != nil {
			return "", err
		}
		var l struct{ Type, TeamName, AgentName string }
		if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" {
			continue
		}
		if l.AgentName != "" {
			owner = team.AgentID(l.AgentName, l.TeamName)
		}
		b.owners[file] = owner
		return owner, nil
	}
}

// readTail reads the last bytes of a file. A missing file counts as empty.
func readTail(file string, most int64) (data []byte, err error) {
	f, err := regular.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unsettled(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, info.Size()-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// underway is mail to one native member that the bridge has handed over.
type underway struct {
	waiting []ledger.Outgoing // the mail that waits now
	taking  bool              // a message was taken out of the mailbox and is not in the conversation yet
	handed  map[string]bool   // messages that are unread in the mailbox, or marked by the bridge only
}

// accept marks messages in the native program's conversation as accepted, and lost ones to be
// given again.
func (p *pass) accept(ctx context.Context, box *inbox.Box, there string, waiting []ledger.Outgoing) (underway, error) {
	u := underway{waiting: waiting, handed: map[string]bool{}}
	var open []ledger.Outgoing
	for _, o := range waiting {
		if o.Delivery.State.HandedOver() {
			open = append(open, o)
		}
	}
	if len(open) == 0 {
		return u, nil
	}
	entries, err := box.Look()
	if err != nil {
		return u, err
	}
	unread, marked := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		unread[e.ID] = unread[e.ID] || !e.Read
		marked[e.ID] = marked[e.ID] || e.Taken
	}
	var talk *record
	var marks []ledger.DeliveryMark
	for _, o := range open {
		id := o.Message.ID
		text, _ := p.wordsThere(o.Message)
		frame := isFrame(text) // its program handles these itself, and does not show them to its model
		if !frame && (unread[id] || marked[id]) {
			u.handed[id] = true
		}
		if unread[id] {
			continue
		}
		m := ledger.DeliveryMark{MessageID: id, Recipient: o.Delivery.Recipient, State: team.Accepted,
			Evidence: "its program took it from the mailbox", IfStates: []team.DeliveryState{team.Injected, team.Unknown}}
		if !frame {
			if talk == nil {
				r, err := p.record(p.cfg, there)
				if err != nil {
					return u, err
				}
				talk = &r
			}
			switch {
			case talk.holds(text):
				m.Evidence = "the transcript of " + there + " holds it"
			case !talk.found && o.Delivery.State == team.Unknown:
				continue // other mail does not wait for it
			case !talk.found && strings.HasPrefix(o.Delivery.Evidence, inItsMailboxAgain) && time.Since(time.UnixMilli(o.Delivery.At)) > p.patience:
				m.State, m.Reason, m.Evidence = team.Unknown, takenTwice, ""
			case talk.ended && time.Since(time.UnixMilli(o.Delivery.At)) > p.patience && (!marked[id] || !p.mayMark(there)):
				m.State, m.Reason, m.Evidence = team.Held, takenAndLost, ""
				if marked[id] {
					p.taken.mistake(there)
				}
			default:
				u.taking, p.soon = true, p.soon || !p.in.Once
				continue
			}
		}
		marks = append(marks, m)
	}
	if len(marks) == 0 {
		return u, nil
	}
	if _, err = p.led().MarkMany(ctx, marks); err != nil {
		return u, err
	}
	u.waiting, err = p.led().Waiting(ctx, open[0].Delivery.Session)
	return u, err
}

// isFrame reports whether a text is a protocol message of the program.
func isFrame(text string) bool {
	_, is := inbox.Parse(text)
	return is
}
