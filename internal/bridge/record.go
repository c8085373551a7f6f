package bridge

import (
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
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The program takes mail out of a mailbox within a second, and gives it to its model when
// the turn is over. What shows that it has done so is its record of the conversation, below
// projects in its configuration directory.

const (
	// recordWithin is how long a message may be on its way from the mailbox to the record of
	// a teammate whose turn is over. Then the program has lost it.
	recordWithin = 30 * time.Second
	// recordTail is how much of a record is searched, from its end; recordHead is how much of
	// one is searched for whose it is.
	recordTail = 16 << 20
	recordHead = 256 << 10
)

// takenAndLost is the reason for which a message is held until it is given again.
const takenAndLost = "its program took it from the mailbox, and its conversation lacks it: it is given again"

// knownAlready stands before a message that is given again.
const knownAlready = "(You may know the next message already: it was handed to you once before, and nothing shows that it arrived.)"

// record is what is known of the conversation of one of theirs.
type record struct {
	adapter.Transcript
	ended bool // what came in last was answered, and the turn is over
}

// holds reports whether the model has a text, in the frame in which the program shows it.
func (r record) holds(text string) bool {
	const end = "</teammate-message"
	for _, t := range []string{text, strings.ReplaceAll(text, end, `<\/teammate-message`)} {
		if r.Holds(">\n"+t+"\n"+end) || r.Holds(">\n"+knownAlready+"\n\n"+t+"\n"+end) {
			return true
		}
	}
	return false
}

// record reads the record of the member there. One that has none is in no turn.
func (b *bridge) record(cfg *team.Config, there string) (record, error) {
	files, err := filepath.Glob(filepath.Join(b.native.dir, "projects", "*", "*.jsonl"))
	if err != nil {
		return record{}, err
	}
	var lines, last []byte
	var newest time.Time // a teammate that was started again has another file
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
		part, err := readPart(file, recordTail)
		if err != nil {
			return record{}, err
		}
		lines = append(lines, part...)
		if at := bytes.LastIndex(part, []byte(`"type":"user"`)); at >= 0 && info.ModTime().After(newest) {
			newest, last = info.ModTime(), part[bytes.LastIndexByte(part[:at], '\n')+1:]
		}
	}
	now := adapter.ReadTranscript(adapter.Claude, last)
	return record{adapter.ReadTranscript(adapter.Claude, lines), len(last) == 0 || now.Ended || now.Interrupted}, nil
}

// ownerOf is whose conversation a file has: NAME@TEAM of a teammate, "" of another.
func (b *bridge) ownerOf(file string) (string, error) {
	if owner, known := b.owners[file]; known {
		return owner, nil
	}
	head, err := readPart(file, -recordHead)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(head) {
		var l struct{ Type, TeamName, AgentName string }
		if json.Unmarshal(line, &l) != nil || l.Type != "user" && l.Type != "assistant" {
			continue
		}
		b.owners[file] = ""
		if l.AgentName != "" {
			b.owners[file] = team.AgentID(l.AgentName, l.TeamName)
		}
		break
	}
	return b.owners[file], nil // "" for now, where nothing was said yet
}

// readPart reads the last bytes of a file, or the first where most is negative. A file
// that is gone has none.
func readPart(file string, most int64) (data []byte, err error) {
	f, err := regular.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unsettled(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if most < 0 {
		return io.ReadAll(io.LimitReader(f, -most))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, info.Size()-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// accept marks what the conversation of the program there holds, and what it has lost as to
// be given again. It returns what waits now, and whether something was taken out of the
// mailbox and is in the conversation not yet.
func (p *pass) accept(ctx context.Context, box *inbox.Box, there string, waiting []ledger.Outgoing) (_ []ledger.Outgoing, taking bool, err error) {
	var open []ledger.Outgoing
	for _, o := range waiting {
		if o.Delivery.State.HandedOver() {
			open = append(open, o)
		}
	}
	if len(open) == 0 {
		return waiting, false, nil
	}
	entries, err := box.Look()
	if err != nil {
		return nil, false, err
	}
	unread := map[string]bool{}
	for _, e := range entries {
		unread[e.ID] = unread[e.ID] || !e.Read
	}
	var talk *record
	var marks []ledger.DeliveryMark
	for _, o := range open {
		if unread[o.Message.ID] {
			continue
		}
		m := ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Accepted,
			Evidence: "its program took it from the mailbox", IfStates: []team.DeliveryState{team.Injected, team.Unknown}}
		if text, _ := p.wordsThere(o.Message); !isFrame(text) { // its program itself acts on the others, and shows its model none
			if talk == nil {
				r, err := p.record(p.cfg, there)
				if err != nil {
					return nil, false, err
				}
				talk = &r
			}
			switch {
			case talk.holds(text):
				m.Evidence = "the transcript of " + there + " holds it"
			case talk.ended && time.Since(time.UnixMilli(o.Delivery.At)) > p.patience:
				m.State, m.Reason, m.Evidence = team.Held, takenAndLost, ""
			default:
				taking, p.soon = true, p.soon || !p.in.Once
				continue
			}
		}
		marks = append(marks, m)
	}
	if len(marks) == 0 {
		return waiting, taking, nil
	}
	if _, err = p.led().MarkMany(ctx, marks); err != nil {
		return nil, false, err
	}
	waiting, err = p.led().Waiting(ctx, open[0].Delivery.Session)
	return waiting, taking, err
}

// isFrame reports whether a text is a protocol message of the program.
func isFrame(text string) bool {
	_, is := inbox.Parse(text)
	return is
}
