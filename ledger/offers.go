package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlReadyFree = `SELECT ` + taskCols + ` FROM tasks INDEXED BY idx_tasks_ready
		WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL ORDER BY priority DESC, seq LIMIT 100`
	sqlReadyOwn = `SELECT ` + taskCols + ` FROM tasks INDEXED BY idx_tasks_assigned
		WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner = ? ORDER BY priority DESC, seq LIMIT 10`
	// The keys of one member's offers of one task are adjacent.
	sqlOffers = `SELECT idemKey FROM messages WHERE run = ? AND fromAgent = '` + team.SystemName + `' AND idemKey > ? AND idemKey < ?`
	// An offer may be of a task that was waiting for its time.
	sqlOfferable = `SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_ready
			WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL)
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_assigned
			WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL AND owner IN (SELECT value FROM json_each(?1)))
		OR EXISTS (SELECT 1 FROM tasks INDEXED BY idx_tasks_later WHERE notBefore > 0 AND notBefore <= ?2)`
)

// maxOffers limits how often one member is offered the same task, in case it
// keeps claiming and releasing it.
const maxOffers = 3

// OfferIn selects the members to which ready tasks are offered.
type OfferIn struct {
	Sessions []string `json:"sessions"`        // idle members, in the order in which to make offers
	Taken    []string `json:"taken,omitempty"` // ids of tasks currently offered to others
}

// Offer is one task offered to one member. The caller mails the message.
type Offer struct {
	Session    string     `json:"session"`
	Task       string     `json:"task"`
	Message    Message    `json:"message"`
	Deliveries []Delivery `json:"deliveries"`
}

// Offerable reports, without a write, whether there may be a task for one of
// the sessions. next is when, in Unix milliseconds, the next waiting task
// becomes due; 0 for none.
func (l *Ledger) Offerable(ctx context.Context, sessions []string) (some bool, next int64, err error) {
	now := l.now().UnixMilli()
	yes, err := read(ctx, l.db, "look for ready tasks", func(r *sql.Rows) (b bool, err error) { return b, r.Scan(&b) },
		sqlOfferable, mustJSON(sessions), now)
	if err != nil {
		return false, 0, err
	}
	due, err := read(ctx, l.db, "look for the next task", scanOne[int64], sqlNextDue, now)
	if err != nil {
		return false, 0, err
	}
	return yes[0], due[0], nil
}

// OfferTasks offers ready tasks to idle members: tasks assigned to a member
// that have become ready since, otherwise unassigned tasks, one per member and
// each to one member. The sender is the system ([team.SystemName]), and the
// message does not count against the message limit; a claim decides who gets
// the task. A member is offered an attempt of a task once. It is not offered
// tasks that it must not take by itself (AutoClaim), and none while it holds
// one.
func (l *Ledger) OfferTasks(ctx context.Context, in OfferIn) ([]Offer, error) {
	a := offerArgs{OfferIn: in}
	for range in.Sessions {
		a.MessageIDs = append(a.MessageIDs, team.NewUUID())
	}
	return write[[]Offer](ctx, l, opTasksOffer, a)
}

type offerArgs struct {
	OfferIn
	MessageIDs []string `json:"messageIds"` // one per session
}

func offerTasks(t *tx, a offerArgs) ([]Offer, error) {
	out := []Offer{}
	row, err := t.run()
	if team.ReasonOf(err) == team.ReasonTeamNotFound {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := t.exec(sqlTasksDue, t.now); err != nil {
		return nil, err
	}
	free, err := t.tasks(sqlReadyFree)
	if err != nil {
		return nil, err
	}
	auto, _, err := value[string](t, sqlSettingGet, settingAutoClaim)
	if err != nil {
		return nil, err
	}
	for i, session := range a.Sessions {
		m, err := t.memberBySession(session)
		if err != nil && !team.IsCode(err, team.CodeNotFound) {
			return nil, err
		}
		if err != nil || m.RemovedAt != 0 {
			continue // it has left meanwhile
		}
		if _, busy, err := value[string](t, sqlOwnerBusy, session, ""); err != nil {
			return nil, err
		} else if busy {
			continue
		}
		own, err := t.tasks(sqlReadyOwn, session)
		if err != nil {
			return nil, err
		}
		// The message of an assignment announced the tasks that were already
		// ready.
		list := slices.DeleteFunc(own, func(task Task) bool { return len(task.DependsOn) == 0 && task.Attempt == 0 })
		if on, err := autoClaimOn(auto, m.Name); err != nil {
			return nil, err
		} else if on {
			list = append(list, free...)
		}
		for _, task := range list {
			if slices.Contains(a.Taken, task.ID) {
				continue
			}
			o, told, err := t.offer(row.ID, m, task, len(list), a.MessageIDs[i])
			if err != nil {
				return nil, err
			}
			if told {
				out, a.Taken = append(out, o), append(a.Taken, task.ID)
				break
			}
		}
	}
	return out, nil
}

// offer offers one task to one member, unless that was done often enough.
func (t *tx) offer(run int64, m Member, task Task, ready int, id string) (o Offer, told bool, err error) {
	prefix := "offer:" + task.ID + ":" + m.SessionKey + ":"
	key := prefix + strconv.Itoa(task.Attempt)
	before, err := column[string](t, sqlOffers, run, prefix, strings.TrimSuffix(prefix, ":")+";")
	if err != nil || len(before) >= maxOffers || slices.Contains(before, key) {
		return o, false, err
	}
	text := fmt.Sprintf("Task #%s is ready, and nobody works on it: %s\n", task.ID, strings.Join(strings.Fields(task.Subject), " "))
	if task.Owner != "" {
		text = fmt.Sprintf("Task #%s, which is assigned to you, is ready now: %s\n", task.ID, strings.Join(strings.Fields(task.Subject), " "))
	}
	text += fmt.Sprintf("You are idle. If it is work for you, claim it (TaskClaim with task_id %q, or teamctl task claim %s) and do it; if not, leave it.",
		task.ID, task.ID)
	if ready > 1 {
		text += " It is not the only one: see TaskList."
	}
	p, err := t.insertMessage(Message{ID: id, Run: run, Kind: team.KindInfo, From: team.SystemName, To: m.Name, IdemKey: key,
		Text: text, Summary: "task " + task.ID + " is ready", At: t.now}, []Member{m})
	return Offer{m.SessionKey, task.ID, p.Message, p.Deliveries}, true, err
}

// tasks reads tasks inside a transaction.
func (t *tx) tasks(q string, args ...any) (out []Task, err error) {
	err = t.each(q, func(r *sql.Rows) error {
		task, err := scanTask(r)
		out = append(out, task)
		return err
	}, args...)
	return out, err
}
