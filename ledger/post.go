package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlMembersNamed = `SELECT sessionKey, agentId, name, generation FROM members
		WHERE removedAt IS NULL AND name COLLATE NOCASE IN (?1, ?2, ?3)`
	sqlMessageCount = `SELECT count(*) FROM messages INDEXED BY idx_messages_cap WHERE run = ?
		AND kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error') AND fromAgent <> '` + team.SystemName + `'`
	sqlDeliveryPut = `INSERT INTO deliveries(message, recipient, session, seq, rank, state, at) VALUES (?, ?, ?, ?, ?, 'posted', ?)`
)

// kinds lists the kinds that can be posted.
var kinds = []team.Kind{
	team.KindMessage, team.KindBroadcast, team.KindTaskRequest, team.KindTaskResponse, team.KindInfo, team.KindError,
	team.KindShutdownRequest, team.KindShutdownApproved, team.KindShutdownRejected, team.KindIdle,
	team.KindTaskAssignment, team.KindTaskCompleted, team.KindPermissionRequest, team.KindPermissionResponse,
	team.KindPlanApprovalRequest, team.KindPlanApprovalResponse,
}

// Post writes a message and one delivery per recipient; when it returns, both
// are durable. To is a name, an agent id or a session key of the roster. The
// caller has verified the sender. A reply (Parent) marks the delivery of its
// parent to the sender as answered.
//
// Errors: CodeNotFound (member_not_found, message_not_found for the parent),
// CodeDenied (not_a_member: the sender), CodeInvalid (self_send, an unknown
// kind, a parent of another run, a task_response without one), CodeLimit
// (team_messages_cap_exceeded, hop_limit, too_long).
func (l *Ledger) Post(ctx context.Context, n NewMessage) (Message, []Delivery, error) {
	p, err := write[posted](ctx, l, opMessagePost, postArgs{n, team.NewUUID()})
	return p.Message, p.Deliveries, err
}

type postArgs struct {
	NewMessage
	MessageID string `json:"messageId"`
}

type posted struct {
	Message    Message    `json:"message"`
	Deliveries []Delivery `json:"deliveries"`
}

func postMessage(t *tx, a postArgs) (posted, error) {
	n := a.NewMessage
	if err := n.check(); err != nil {
		return posted{}, err
	}
	if approvalKind(n.Kind) {
		return posted{}, team.Errorf(team.CodeDenied, "a %s cannot be sent as mail: use the approval queue", n.Kind).
			WithReason(team.ReasonApprovalOnly).WithHint("teamctl approvals")
	}
	row, err := t.run()
	if err != nil {
		return posted{}, err
	}
	if n.IdemKey != "" {
		first, found, err := t.message(sqlMessageIdm, row.ID, n.From, n.IdemKey)
		if err != nil {
			return posted{}, err
		}
		if found {
			ds, err := t.deliveries(first.ID)
			return posted{first, ds}, err
		}
	}
	roster, err := t.concerned(&n)
	if err != nil {
		return posted{}, err
	}
	if err := onRoster(n.From, roster); err != nil {
		return posted{}, err
	}
	to, recipients, err := n.recipients(roster)
	if n.Kind == team.KindShutdownApproved || n.Kind == team.KindShutdownRejected {
		to, recipients, err = n.andLead(to, recipients, roster, err)
	}
	if err != nil {
		return posted{}, err
	}
	if err := t.checkParent(n, row.ID); err != nil {
		return posted{}, err
	}
	before, err := t.checkCap(n.Kind, row.ID)
	if err != nil {
		return posted{}, err
	}
	m := Message{ID: a.MessageID, Run: row.ID, Kind: n.Kind, From: n.From, To: to, Parent: n.Parent, Hop: n.Hop,
		IdemKey: n.IdemKey, RequestID: n.RequestID, Text: n.Text, Summary: n.Summary, Payload: n.Payload, At: t.now}
	p, err := t.insertMessage(m, recipients)
	if err != nil {
		return posted{}, err
	}
	if err == nil && conversation(n.Kind) && before+1 == capNear {
		err = t.tellCap(row.ID, roster)
	}
	if err == nil && n.Parent != "" {
		err = t.answered(n.Parent, n.From, m.ID)
	}
	return p, err
}

// capNear is the number of messages in a run at which the lead is warned of the
// limit.
const capNear = team.MaxMessagesPerRun * 8 / 10

// nextRun is the command that starts a run, which resets the count of messages.
const nextRun = "teamctl run start"

// tellCap warns the lead, once per run, that the run approaches its message
// limit.
func (t *tx) tellCap(run int64, roster []Member) error {
	i := slices.IndexFunc(roster, func(m Member) bool { return m.Name == team.LeadName })
	if i < 0 {
		return nil
	}
	_, err := t.insertMessage(Message{ID: team.NewUUID(), Run: run, Kind: team.KindInfo, From: team.SystemName, To: team.LeadName,
		IdemKey: "messages_cap", At: t.now,
		Text: fmt.Sprintf("Run %d has %d of at most %d messages. Messages beyond the limit are refused. To start the next run: %s",
			run, capNear, team.MaxMessagesPerRun, nextRun),
		Summary: fmt.Sprintf("run %d has %d of at most %d messages", run, capNear, team.MaxMessagesPerRun)}, roster[i:i+1])
	return err
}

// concerned returns the members that a message involves: for a message to a
// name its sender, its recipient and the lead, found by index and with only the
// fields that post needs; otherwise, and if there is no member of that name,
// all members. It replaces a former name of a member by the current one.
func (t *tx) concerned(n *NewMessage) ([]Member, error) {
	if n.To == "" {
		return t.members()
	}
	var some []Member
	err := t.each(sqlMembersNamed, func(r *sql.Rows) error {
		var m Member
		err := r.Scan(&m.SessionKey, &m.AgentID, &m.Name, &m.Generation)
		some = append(some, m)
		return err
	}, n.From, n.To, team.LeadName)
	if err != nil || slices.ContainsFunc(some, func(m Member) bool { return strings.EqualFold(m.Name, n.To) }) {
		return some, err
	}
	was, _, _ := team.ParseAgentID(n.To)
	if m, found, err := t.formerly(was); err != nil {
		return nil, err
	} else if found && m.RemovedAt == 0 {
		n.To = m.Name
	}
	return t.members()
}

func (t *tx) insertMessage(m Message, recipients []Member) (posted, error) {
	seq, _, err := value[int64](t, sqlMessagePut, m.ID, m.Run, m.Kind, m.From, orNull(m.To), orNull(m.Parent), m.Hop,
		orNull(m.IdemKey), m.RequestID, m.Text, m.Summary, jsonOrNull(m.Payload), m.At)
	if err != nil {
		return posted{}, err
	}
	t.wrote = true
	m.Seq = seq
	p := posted{Message: m, Deliveries: make([]Delivery, 0, len(recipients))}
	rank := m.Rank()
	for _, r := range recipients {
		if _, err := t.exec(sqlDeliveryPut, m.ID, r.Name, r.SessionKey, seq, rank, m.At); err != nil {
			return posted{}, err
		}
		t.concern(r.SessionKey)
		p.Deliveries = append(p.Deliveries, Delivery{MessageID: m.ID, Seq: seq, Recipient: r.Name,
			Session: r.SessionKey, State: team.Posted, At: m.At})
	}
	if err := t.replaceIdle(m); err != nil {
		return posted{}, err
	}
	return p, t.event(Event{Who: m.From, What: team.EventMessagePosted, ID: m.ID, After: string(team.Posted),
		Data: json.RawMessage(mustJSON(postData{m.Kind, m.To, len(m.Text)}))})
}

// Rank returns the class of a message in the order of delivery: 0 for shutdown
// messages, 1 for the lead's, 2 for all others. Within a rank the order of
// posting is kept.
func (m Message) Rank() int {
	switch {
	case shutdownKind(m.Kind):
		return 0
	case m.From == team.LeadName:
		return 1
	default:
		return 2
	}
}

type postData struct {
	Kind team.Kind `json:"kind"`
	To   string    `json:"to,omitempty"`
	Size int       `json:"size"`
}

func (n NewMessage) check() error {
	if n.From == "" {
		return team.Errorf(team.CodeInvalid, "a message needs a sender")
	}
	if strings.EqualFold(n.From, team.SystemName) {
		return team.Errorf(team.CodeDenied, "the sender name %s is reserved", team.SystemName).WithReason(team.ReasonReservedSender)
	}
	if !slices.Contains(kinds, n.Kind) {
		return team.Errorf(team.CodeInvalid, "invalid kind: %s", n.Kind).WithReason(team.ReasonInvalidKind)
	}
	if n.Text == "" && len(n.Payload) == 0 {
		return team.Errorf(team.CodeInvalid, "the message is empty")
	}
	if len(n.Payload) > 0 && !json.Valid(n.Payload) {
		return team.Errorf(team.CodeInvalid, "the payload of a message must be JSON")
	}
	if size := len(n.Text) + len(n.Payload); size > team.MaxMessageBytes {
		return team.Errorf(team.CodeLimit, "the message has %d bytes, the limit is %d", size, team.MaxMessageBytes).
			WithReason(team.ReasonTooLong).WithHint("write it to a file and send the path")
	}
	if n.Hop < 0 || n.Hop > team.MaxHops {
		return team.Errorf(team.CodeLimit, "the message has made %d hops, the limit is %d", n.Hop, team.MaxHops).
			WithReason(team.ReasonHopLimit)
	}
	if n.Kind == team.KindTaskResponse && n.Parent == "" {
		return team.Errorf(team.CodeInvalid, "a task_response needs the message that it answers").WithReason(team.ReasonParentRequired)
	}
	return nil
}

// onRoster returns an error for a sender that is not, or no longer, a member:
// CodeDenied not_a_member.
func onRoster(from string, roster []Member) error {
	if slices.ContainsFunc(roster, func(m Member) bool { return strings.EqualFold(m.Name, from) }) {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s is not on the roster and cannot send", from).WithReason(team.ReasonNotAMember)
}

// recipients finds the recipients on the roster, and the name to which To
// resolves.
func (n NewMessage) recipients(roster []Member) (to string, who []Member, err error) {
	if n.To == "" {
		return "", slices.DeleteFunc(roster, func(m Member) bool { return strings.EqualFold(m.Name, n.From) }), nil
	}
	i := slices.IndexFunc(roster, func(m Member) bool {
		return strings.EqualFold(m.Name, n.To) || strings.EqualFold(m.AgentID, n.To) || m.SessionKey == n.To
	})
	switch {
	case i < 0:
		return "", nil, errNoMember(n.To, roster)
	case n.ToSession != "" && roster[i].SessionKey != n.ToSession:
		return "", nil, team.Errorf(team.CodeNotFound, "%s is now a different agent", roster[i].Name).WithReason(team.ReasonMemberNotFound)
	case n.ToGen != "" && roster[i].Generation != n.ToGen:
		return "", nil, team.Errorf(team.CodeConflict, "%s has been restarted meanwhile", roster[i].Name).WithReason(team.ReasonStaleGeneration)
	case strings.EqualFold(roster[i].Name, n.From):
		return "", nil, ErrSelfSend()
	}
	return roster[i].Name, roster[i : i+1], nil
}

// andLead adds the lead to the recipients of an answer to a shutdown request,
// whichever member requested it; if that member has left meanwhile, the lead is
// the only recipient.
func (n NewMessage) andLead(to string, who, roster []Member, err error) (string, []Member, error) {
	i := slices.IndexFunc(roster, func(m Member) bool { return m.Name == team.LeadName })
	switch {
	case i < 0 || strings.EqualFold(n.From, team.LeadName):
		return to, who, err
	case team.ReasonOf(err) == team.ReasonMemberNotFound:
		return team.LeadName, roster[i : i+1], nil
	case err != nil || slices.ContainsFunc(who, func(m Member) bool { return m.Name == team.LeadName }):
		return to, who, err
	}
	return to, append(slices.Clone(who), roster[i]), nil
}

// ErrSelfSend returns the error for a message to its own sender: CodeInvalid
// self_send.
func ErrSelfSend() error {
	return team.Errorf(team.CodeInvalid, "Cannot send a message to yourself").WithReason(team.ReasonSelfSend)
}

func (t *tx) checkParent(n NewMessage, run int64) error {
	if n.Parent == "" {
		return nil
	}
	parent, found, err := t.message(sqlMessageGet, n.Parent)
	switch {
	case err != nil:
		return err
	case !found:
		return errNoMessage(n.Parent)
	case parent.Run != run:
		return team.Errorf(team.CodeInvalid, "message %s is of run %d, not of the current run %d", parent.ID, parent.Run, run).
			WithReason(team.ReasonParentOfOtherRun)
	}
	return nil
}

// checkCap returns an error for a message beyond the limit of its run, and the
// number of messages before it.
func (t *tx) checkCap(k team.Kind, run int64) (before int, err error) {
	if !conversation(k) {
		return 0, nil
	}
	n, _, err := value[int](t, sqlMessageCount, run)
	if err == nil && n >= team.MaxMessagesPerRun {
		return n, team.Errorf(team.CodeLimit, "team_messages_cap_exceeded: team_run %d already has %d messages (cap %d)",
			run, n, team.MaxMessagesPerRun).WithReason(team.ReasonMessagesCap).WithHint(nextRun)
	}
	return n, err
}

func (t *tx) message(q string, args ...any) (m Message, found bool, err error) {
	found, err = t.one(q, func(r *sql.Rows) (err error) {
		m, err = scanMessage(r)
		return err
	}, args...)
	return m, found, err
}
