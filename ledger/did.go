package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const sqlEndedSince = `SELECT ` + taskCols + ` FROM tasks WHERE owner = ? AND status IN ('completed', 'failed') AND completedAt > ?
	ORDER BY completedAt DESC, seq DESC LIMIT 1`

// TurnMark is a point in a member's activity; everything before it has been
// reported. The zero value means none.
type TurnMark struct {
	At  int64 // Unix milliseconds
	Seq int64 // of the newest message
}

// Did is the content of an idle notice about the finished turn.
type Did struct {
	Task   string          // id of the newest task that ended in it; "" for none
	Status team.TaskStatus // of that task
	Why    string          // why it failed
	Peers  string          // summary of the messages to teammates other than the lead
	Next   TurnMark        // the mark for the next turn
}

// maxPeers is the number of messages to teammates in an idle notice,
// summaryWords the number of words from a message without a summary.
const (
	maxPeers     = 3
	summaryWords = 10
)

// DidSince returns what a member has done since a mark (an idle notice contains
// the completed task and a summary of messages to peers). Without a mark it
// only creates one.
func (l *Ledger) DidSince(ctx context.Context, m Member, since TurnMark) (d Did, err error) {
	d.Next.At = l.now().UnixMilli()
	last, err := l.Messages(ctx, MessageFilter{Newest: true, Limit: 1})
	if err != nil {
		return d, err
	}
	if len(last) > 0 {
		d.Next.Seq = last[0].Seq
	}
	if since == (TurnMark{}) {
		return d, nil
	}
	ended, err := read(ctx, l.db, "read what "+m.Name+" has ended", scanTask, sqlEndedSince, m.SessionKey, since.At)
	if err != nil {
		return d, err
	}
	if len(ended) > 0 {
		d.Task, d.Status = ended[0].ID, ended[0].Status
		if r := ended[0].Result; r != nil && d.Status == team.TaskFailed {
			d.Why, _, _ = strings.Cut(strings.TrimSpace(r.Error), "\n")
		}
	}
	said, err := l.Messages(ctx, MessageFilter{From: m.Name, After: since.Seq})
	if err != nil {
		return d, err
	}
	said = slices.DeleteFunc(said, func(x Message) bool {
		return !conversation(x.Kind) || x.To == team.LeadName || x.Seq > d.Next.Seq
	})
	d.Peers = inShort(said)
	return d, nil
}

// inShort summarises the newest messages in one line, with their recipients.
func inShort(said []Message) string {
	var out []string
	for _, m := range said[max(0, len(said)-maxPeers):] {
		text := m.Summary
		if text == "" {
			words := strings.Fields(m.Text)
			if text = strings.Join(words[:min(len(words), summaryWords)], " "); len(words) > summaryWords {
				text += "..."
			}
		}
		to := m.To
		if to == "" {
			to = "all"
		}
		out = append(out, "[to "+to+"] "+text)
	}
	if more := len(said) - len(out); more > 0 {
		out = append([]string{fmt.Sprintf("%d more, and", more)}, out...)
	}
	return strings.Join(out, " ")
}
