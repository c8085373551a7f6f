package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Notice is an automatic notice to the lead about a member. The sender of a
// notice about a terminated member (team.KindTeammateTerminated) is the system,
// [team.SystemName], which is not a member: it has no token, role or mailbox,
// its name is reserved, and no posted message may use it. The sender of a
// notice about an idle or failed member (team.KindIdle), a completed task
// (team.KindTaskCompleted) or trouble of its own (team.KindError) is the member.
type Notice struct {
	Kind      team.Kind `json:"kind"`
	Text      string    `json:"text"`
	Summary   string    `json:"summary,omitempty"`
	IdemKey   string    `json:"idemKey,omitempty"`   // the same key is sent once per run
	MessageID string    `json:"messageId,omitempty"` // generated if empty
	// Failed applies to a team.KindIdle without a key: the turn has failed. It
	// is sent once per idle period, even if another notice was already sent for
	// the period.
	Failed bool `json:"failed,omitempty"`
}

func (n *Notice) fill() {
	if n.MessageID == "" {
		n.MessageID = team.NewUUID()
	}
}

// Leave is RemoveMember with a notice, in the same transaction: the lead is
// notified of every removed member. A member that has already left causes no
// second notice; then the message has no id.
func (l *Ledger) Leave(ctx context.Context, session string, n Notice) (Message, []Delivery, error) {
	n.fill()
	p, err := write[posted](ctx, l, opMemberLeave, leaveArgs{session, n})
	return p.Message, p.Deliveries, err
}

type leaveArgs struct {
	Session string `json:"session"`
	Notice  Notice `json:"notice"`
}

func leave(t *tx, a leaveArgs) (posted, error) {
	m, err := t.memberBySession(a.Session)
	if err != nil || m.RemovedAt != 0 {
		return posted{}, err
	}
	if _, err := removeMember(t, a.Session); err != nil {
		return posted{}, err
	}
	return t.notice(m, a.Notice)
}

const (
	sqlIdleTold   = `UPDATE members SET idleTold = 1 WHERE sessionKey = ? AND idleTold = 0`
	sqlFailedTold = `UPDATE members SET idleTold = 1, failedTold = 1 WHERE sessionKey = ? AND failedTold = 0`
	sqlIdleEnded  = `UPDATE members SET idleTold = 0, failedTold = 0 WHERE sessionKey = ? AND idleTold = 1`
)

// tellOfMember posts the notice of a change, if there is one and it was not
// sent yet. An idle period ends with other activity or with its generation. An
// unknown activity does not end it: a new supervisor knows nothing at first.
func (t *tx) tellOfMember(before, m Member, n *Notice) error {
	other := m.Activity != before.Activity && m.Activity != team.Idle && m.Activity != team.ActivityUnknown
	if other || m.Generation != before.Generation {
		if _, err := t.exec(sqlIdleEnded, m.SessionKey); err != nil {
			return err
		}
	}
	if n == nil {
		return nil
	}
	if n.Kind == team.KindIdle && n.IdemKey == "" {
		told := sqlIdleTold
		if n.Failed {
			told = sqlFailedTold
		}
		if fresh, err := t.exec(told, m.SessionKey); err != nil || fresh == 0 {
			return err
		}
	}
	_, err := t.notice(m, *n)
	return err
}

// notice posts a notice of m to the lead. Without a run or a lead it sends
// nothing, because the change itself must not fail.
func (t *tx) notice(m Member, n Notice) (posted, error) {
	from := m.Name
	switch n.Kind {
	case team.KindTeammateTerminated:
		from = team.SystemName
	case team.KindIdle, team.KindTaskCompleted, team.KindError:
	default:
		return posted{}, team.Errorf(team.CodeInvalid, "invalid kind of notice: %s", n.Kind).WithReason(team.ReasonInvalidKind)
	}
	row, err := t.run()
	if team.ReasonOf(err) == team.ReasonTeamNotFound {
		return posted{}, nil
	}
	if err != nil {
		return posted{}, err
	}
	if n.IdemKey != "" {
		first, found, err := t.message(sqlMessageIdm, row.ID, from, n.IdemKey)
		if err != nil || found {
			return posted{Message: first}, err // its poster mails it
		}
	}
	roster, err := t.members()
	if err != nil {
		return posted{}, err
	}
	i := slices.IndexFunc(roster, func(m Member) bool { return m.Name == team.LeadName })
	if i < 0 {
		return posted{}, nil
	}
	return t.insertMessage(Message{ID: n.MessageID, Run: row.ID, Kind: n.Kind, From: from, To: team.LeadName,
		IdemKey: n.IdemKey, Text: n.Text, Summary: n.Summary, At: t.now}, roster[i:i+1])
}

const sqlIdleBefore = `SELECT m.id, m.text, d.state FROM messages m INDEXED BY idx_messages_idle
	JOIN deliveries d ON d.message = m.id AND d.recipient = ?
	WHERE m.kind = 'idle_notification' AND m.fromAgent = ? AND m.seq < ? ORDER BY m.seq DESC LIMIT 1`

// replaceIdle drops the unread idle notice that a member sent before this one:
// the lead needs only the newest, and a lead that reads nothing must not
// increase the cost of each task. A notice of a failure stays.
func (t *tx) replaceIdle(m Message) error {
	if m.Kind != team.KindIdle || m.To != team.LeadName {
		return nil
	}
	var id, text string
	var state team.DeliveryState
	found, err := t.one(sqlIdleBefore, func(r *sql.Rows) error { return r.Scan(&id, &text, &state) }, m.To, m.From, m.Seq)
	if err != nil || !found || state != team.Posted && state != team.Mailed && state != team.Held {
		return err
	}
	var said struct {
		IdleReason, CompletedStatus, FailureReason string
	}
	if json.Unmarshal([]byte(text), &said) != nil || said.FailureReason != "" || said.IdleReason == "failed" || said.CompletedStatus == string(team.TaskFailed) {
		return nil
	}
	_, err = t.mark(DeliveryMark{MessageID: id, Recipient: m.To, State: team.Dropped, Reason: "replaced by a newer notice of " + m.From})
	return err
}

// TaskCompletedKey returns the idempotency key of the notice of a completed
// task: posting it again returns the existing one.
func TaskCompletedKey(task string, attempt int) string {
	return "task_completed:" + task + ":" + strconv.Itoa(attempt)
}

// tellCompleted notifies the lead that a member has completed a task, and of
// the tasks that became ready as a result: once for every task, whichever
// program completed it.
func (t *tx) tellCompleted(task Task, ready []string) error {
	if task.OwnerName == "" || strings.EqualFold(task.OwnerName, team.LeadName) {
		return nil
	}
	n := Notice{Kind: team.KindTaskCompleted, IdemKey: TaskCompletedKey(task.ID, task.Attempt),
		Summary: "completed task " + task.ID + ": " + strings.Join(strings.Fields(task.Subject), " ")}
	n.fill()
	frame := team.JSONObject{}
	for _, f := range [][2]string{
		{"type", string(team.KindTaskCompleted)}, {"from", task.OwnerName}, {"taskId", task.ID}, {"taskSubject", task.Subject},
		{"timestamp", time.UnixMilli(t.now).UTC().Format("2006-01-02T15:04:05.000Z")},
	} {
		frame = append(frame, team.JSONField{Key: f[0], Value: team.AppendJSONString(nil, f[1])})
	}
	if len(ready) > 0 {
		n.Summary += "; ready now: " + firstOf(ready)
		frame = append(frame, team.JSONField{Key: "readyTasks", Value: []byte(mustJSON(ready))})
	}
	n.Text = string(frame.AppendJSON(nil))
	_, err := t.notice(Member{Name: task.OwnerName}, n)
	return err
}

// firstOf returns the first of many ids, and the number of the rest.
func firstOf(ids []string) string {
	const most = 10
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + " and " + strconv.Itoa(len(ids)-most) + " more"
}

// EdgePrefix is the prefix of settings that are edges of the team's graph; it
// is followed by from, type and to, separated by dots. Each edge is a row of
// its own, so that concurrent changes to the graph do not undo each other.
const EdgePrefix = "edge."

// dropEdges removes the edges from and to a leaving member: the next member of
// its name starts without.
func (t *tx) dropEdges(name string) error {
	all, err := column[string](t, sqlSettingLike, EdgePrefix)
	if err != nil {
		return err
	}
	for _, s := range all {
		edge := strings.TrimPrefix(s, EdgePrefix)
		if ends := strings.Split(edge, "."); len(ends) != 3 || !strings.EqualFold(ends[0], name) && !strings.EqualFold(ends[2], name) {
			continue
		}
		if _, err := t.exec(sqlSettingDrop, s); err != nil {
			return err
		}
		err := t.event(Event{What: team.EventTeamEdge, ID: edge, After: "removed",
			Data: json.RawMessage(mustJSON(edgeData{name + " left the team"}))})
		if err != nil {
			return err
		}
	}
	return nil
}

type edgeData struct {
	Reason string `json:"reason"`
}
