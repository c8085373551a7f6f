package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlMirrored = `SELECT bridge, kind, there, here, ours, data FROM mirrored WHERE bridge = ? ORDER BY kind, at, there`
	sqlMirrorAt = `SELECT bridge, kind, there, here, ours, data FROM mirrored WHERE bridge = ? AND kind = ? AND there = ?`
	sqlMirror   = `INSERT INTO mirrored(bridge, kind, there, here, ours, data, at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (bridge, kind, there) DO UPDATE SET here = excluded.here, ours = excluded.ours, data = excluded.data`
	sqlMirrorDrop = `DELETE FROM mirrored WHERE bridge = ? AND kind = ? AND there = ?`
)

// MirrorKind is the kind of a mirrored object.
type MirrorKind string

// Kinds of mirrored objects, with the meaning of There and Here.
const (
	MirrorMember MirrorKind = "member" // name, session key
	MirrorTask   MirrorKind = "task"   // id, id
	MirrorMail   MirrorKind = "mail"   // mailbox and key of an imported entry, message id
	MirrorDraft  MirrorKind = "draft"  // file about to become a mailbox, name of the mailbox
	MirrorStop   MirrorKind = "stop"   // request id, request id or session key
)

// Mirrored links an object of this team to its counterpart in the team of
// another program.
type Mirrored struct {
	Bridge string          `json:"bridge"` // identifies the program and its team
	Kind   MirrorKind      `json:"kind"`
	There  string          `json:"there"`
	Here   string          `json:"here"`
	Ours   bool            `json:"ours,omitempty"` // it was created in this team
	Data   json.RawMessage `json:"data,omitempty"` // the last state common to both sides
}

// Mirrored returns all objects of one bridge.
func (l *Ledger) Mirrored(ctx context.Context, bridge string) ([]Mirrored, error) {
	return read(ctx, l.db, "read what is mirrored", scanMirrored, sqlMirrored, bridge)
}

type mirrorArgs struct {
	Put  []Mirrored `json:"put,omitempty"`
	Drop []Mirrored `json:"drop,omitempty"`
}

// Mirror records mirrored objects and removes records, all or nothing.
func (l *Ledger) Mirror(ctx context.Context, put, drop []Mirrored) error {
	if len(put)+len(drop) == 0 {
		return nil
	}
	_, err := write[none](ctx, l, opMirror, mirrorArgs{put, drop})
	return err
}

func mirror(t *tx, a mirrorArgs) (none, error) {
	for _, m := range a.Drop {
		if _, err := t.exec(sqlMirrorDrop, m.Bridge, m.Kind, m.There); err != nil {
			return none{}, err
		}
	}
	for _, m := range a.Put {
		if err := t.mirror(m); err != nil {
			return none{}, err
		}
	}
	return none{}, nil
}

func (t *tx) mirror(m Mirrored) error {
	if m.Bridge == "" || m.There == "" {
		return team.Errorf(team.CodeInvalid, "a mirrored object needs a bridge and a remote name")
	}
	_, err := t.exec(sqlMirror, m.Bridge, m.Kind, m.There, m.Here, m.Ours, jsonOrNull(m.Data), t.now)
	return err
}

// mirrorAt finds the record of an object mirrored before.
func (t *tx) mirrorAt(m Mirrored) (was Mirrored, found bool, err error) {
	found, err = t.one(sqlMirrorAt, func(r *sql.Rows) (err error) {
		was, err = scanMirrored(r)
		return err
	}, m.Bridge, m.Kind, m.There)
	return was, found, err
}

type mirrorMemberArgs struct {
	Mirrored Mirrored `json:"mirrored"`
	Member   Member   `json:"member"`
}

// MirrorMember is AddMember for a member of another program, together with its
// record: a member mirrored before is not added again, but returned as it is.
func (l *Ledger) MirrorMember(ctx context.Context, m Mirrored, member Member) (Member, bool, error) {
	if member.SessionKey == "" {
		member.SessionKey = team.TeammateSessionKey(member.Spec.AgentType)
	}
	a, err := write[addedMember](ctx, l, opMirrorMember, mirrorMemberArgs{m, member})
	return a.Member, a.Renamed, err
}

func mirrorMember(t *tx, a mirrorMemberArgs) (addedMember, error) {
	was, found, err := t.mirrorAt(a.Mirrored)
	if err != nil {
		return addedMember{}, err
	}
	if found {
		m, err := t.memberBySession(was.Here)
		return addedMember{Member: m}, err
	}
	added, err := addMember(t, addMemberArgs{Member: a.Member})
	if err != nil {
		return added, err
	}
	a.Mirrored.Here = added.Member.SessionKey
	return added, t.mirror(a.Mirrored)
}

type mirrorTaskArgs struct {
	Mirrored Mirrored `json:"mirrored"`
	Task     NewTask  `json:"task"`
	Owner    string   `json:"owner,omitempty"`
	By       string   `json:"by"`
}

// MirrorTask is CreateTasks for one task of another program, together with its
// record; it returns the local id, which is that of the existing task if it was
// mirrored before. If assigned to a session, owner, the task can at no moment
// be claimed by another.
func (l *Ledger) MirrorTask(ctx context.Context, m Mirrored, n NewTask, owner, by string) (id string, err error) {
	return write[string](ctx, l, opMirrorTask, mirrorTaskArgs{m, n, owner, by})
}

func mirrorTask(t *tx, a mirrorTaskArgs) (string, error) {
	was, found, err := t.mirrorAt(a.Mirrored)
	if err != nil || found {
		return was.Here, err
	}
	made, err := createTasks(t, createArgs{[]NewTask{a.Task}, a.By})
	if err != nil {
		return "", err
	}
	if a.Owner != "" {
		if _, err := updateTask(t, TaskPatch{ID: made[0].ID, By: a.By, Owner: &a.Owner}); err != nil {
			return "", err
		}
	}
	a.Mirrored.Here = made[0].ID
	return made[0].ID, t.mirror(a.Mirrored)
}

type mirrorMailArgs struct {
	Mirrored  Mirrored   `json:"mirrored"`
	Message   NewMessage `json:"message"`
	MessageID string     `json:"messageId"`
}

// MirrorMail is Post for a message from another program's mailbox, together
// with its record: a message mirrored before is not posted again in any run,
// but returned as it is.
func (l *Ledger) MirrorMail(ctx context.Context, m Mirrored, n NewMessage) (Message, []Delivery, error) {
	p, err := write[posted](ctx, l, opMirrorMail, mirrorMailArgs{m, n, team.NewUUID()})
	return p.Message, p.Deliveries, err
}

func mirrorMail(t *tx, a mirrorMailArgs) (posted, error) {
	was, found, err := t.mirrorAt(a.Mirrored)
	if err != nil {
		return posted{}, err
	}
	if found {
		var p posted
		if p.Message, _, err = t.message(sqlMessageGet, was.Here); err == nil { // a pruned message has no row
			p.Deliveries, err = t.deliveries(was.Here)
		}
		return p, err
	}
	p, err := postMessage(t, postArgs{a.Message, a.MessageID})
	if err != nil {
		return p, err
	}
	a.Mirrored.Here = p.Message.ID
	return p, t.mirror(a.Mirrored)
}

func scanMirrored(r *sql.Rows) (Mirrored, error) {
	var m Mirrored
	var data sql.NullString
	err := r.Scan(&m.Bridge, &m.Kind, &m.There, &m.Here, &m.Ours, &data)
	m.Data = rawJSON(data)
	return m, err
}
