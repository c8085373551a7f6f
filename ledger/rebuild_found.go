package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Found is what other files of a team contain about its ledger.
type Found struct {
	Team     *TeamRow // from config.json
	Members  []FoundMember
	Messages []FoundMessage
	// Unread says which of the other files could not be read, and UnreadMail
	// which mailboxes.
	Unread, UnreadMail []string
}

// FoundMember is a member in config.json, or one whose bundle has a living
// generation.
type FoundMember struct {
	Member    Member
	TokenHash string // of the secret in the bundle
	Lives     bool   // Member.Generation is alive
}

// FoundMessage is an entry of a mailbox.
type FoundMessage struct {
	ID, From, To, Text, Summary, RequestID string
	Kind                                   team.Kind
	At                                     int64
	Read                                   bool
}

// idGap is how far a sequence of unique numbers is advanced if its last value
// is unknown.
const idGap = 1000

// complete adds what the team's other files contain, and makes the result
// consistent.
func (r *rebuilder) complete(ctx context.Context) error {
	for _, f := range []func(context.Context) error{r.numbers, r.team, r.members, r.runs, r.messages, r.references} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	broken, err := r.column(ctx, `SELECT "table" || ' refers to a missing ' || coalesce(parent, '') FROM pragma_foreign_key_check`)
	if err != nil {
		return err
	}
	if len(broken) > 0 {
		return team.Errorf(team.CodeInternal, "%d rows of the rebuilt ledger have dangling references: %s", len(broken), broken[0])
	}
	return nil
}

// numbers makes sure that no number is assigned twice.
func (r *rebuilder) numbers(ctx context.Context) error {
	gap := 0
	if !r.whole["counters"] || !r.whole["tasks"] {
		gap = idGap
	}
	if err := r.exec(ctx, `INSERT INTO counters(name, value) SELECT 'task', coalesce(max(seq), 0) FROM tasks WHERE true
		ON CONFLICT(name) DO UPDATE SET value = max(value, excluded.value)`); err != nil {
		return err
	}
	if err := r.exec(ctx, `UPDATE counters SET value = value + ? WHERE name = 'task'`, gap); err != nil {
		return err
	}
	for _, name := range []string{"messages", "events", "runs", "approvals", "merges", "file_leases", "verifications", "renames"} {
		if r.whole[name] {
			continue
		}
		if err := r.exec(ctx, `UPDATE sqlite_sequence SET seq = seq + ? WHERE name = ?`, idGap, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuilder) team(ctx context.Context) error {
	var n int
	if err := r.out.QueryRowContext(ctx, "SELECT count(*) FROM team").Scan(&n); err != nil || n > 0 {
		return err
	}
	t := r.in.Found.Team
	if t == nil {
		return errUnknownTeam()
	}
	r.res.Files["team"]++
	return r.exec(ctx, sqlTeamPut, t.Key, t.Name, t.Description, t.Repo, t.Base, t.WorktreeDir, t.CreatedAt, t.LeadSession,
		"active", mustJSON(append([]string{}, t.Hidden...)))
}

func (r *rebuilder) members(ctx context.Context) error {
	r.res.Missing = append(r.res.Missing, r.in.Found.Unread...)
	for _, f := range r.in.Found.Members {
		m := f.Member
		var session, generation, observed string
		err := r.out.QueryRowContext(ctx, `SELECT sessionKey, generation, observed FROM members
			WHERE name = ? COLLATE NOCASE AND removedAt IS NULL`, m.Name).Scan(&session, &generation, &observed)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if r.whole["members"] {
				continue // it has left
			}
			if err := r.addMember(ctx, f); err != nil {
				return err
			}
		case err != nil:
			return err
		case f.Lives && (generation != m.Generation || !team.Observed(observed).Alive()):
			// It was started after the state in the sources.
			if err := r.exec(ctx, `UPDATE members SET generation = ?, observed = 'running', desired = 'running', ready = 0, pid = ?, paneId = ?,
				startedAt = ?, endedAt = 0, exitText = '', reason = '', stopOrder = '', nextStart = 0,
				tokenHash = CASE ? WHEN '' THEN tokenHash ELSE ? END WHERE sessionKey = ?`,
				m.Generation, m.PID, m.PaneID, m.StartedAt, f.TokenHash, f.TokenHash, session); err != nil {
				return err
			}
			r.res.Files["members"]++
			r.res.miss("member %s: its latest start was found only in its own files", m.Name)
		}
	}
	return nil
}

func (r *rebuilder) addMember(ctx context.Context, f FoundMember) error {
	m := f.Member
	role := "member"
	if m.Name == team.LeadName {
		role = "lead"
		if err := r.out.QueryRowContext(ctx, "SELECT leadSession FROM team").Scan(&m.SessionKey); err != nil {
			return err
		}
	}
	if m.SessionKey == "" { // use the session that its mail names
		err := r.out.QueryRowContext(ctx, `SELECT session FROM deliveries WHERE recipient = ?
			AND session NOT IN (SELECT sessionKey FROM members) ORDER BY seq DESC LIMIT 1`, m.Name).Scan(&m.SessionKey)
		if errors.Is(err, sql.ErrNoRows) {
			m.SessionKey, err = team.TeammateSessionKey(m.Spec.AgentType), nil
		}
		if err != nil {
			return err
		}
	}
	if err := r.exec(ctx, sqlMemberPut, m.SessionKey, m.AgentID, m.Name, role, m.Role, m.JoinedAt, mustJSON(m.Spec), m.Color,
		m.Desired, m.Observed, m.Activity, m.ActivityAt, m.Ready, m.Generation, m.PID, m.PaneID, m.StartedAt, m.Restarts,
		m.Failures, m.NextStart, m.ExitText, m.Reason, m.Worktree, m.Branch, m.Base); err != nil {
		return fmt.Errorf("add member %s: %w", m.Name, err)
	}
	r.res.Files["members"]++
	if role == "lead" {
		return nil
	}
	r.res.miss("member %s: rebuilt from config.json and its own files; its role, limits and start time-outs are the defaults", m.Name)
	return r.exec(ctx, sqlTokenPut, f.TokenHash, m.SessionKey)
}

// runs recreates the runs that are referred to, and an open one.
func (r *rebuilder) runs(ctx context.Context) error {
	for _, q := range []string{
		`INSERT INTO runs(id, startedAt, endedAt) SELECT run, min(at), max(at) FROM messages WHERE run NOT IN (SELECT id FROM runs) GROUP BY run`,
		`INSERT INTO runs(id, startedAt, endedAt) SELECT run, min(createdAt), max(createdAt) FROM approvals
			WHERE run NOT IN (SELECT id FROM runs) GROUP BY run`,
		`UPDATE runs SET parent = NULL, endedAt = coalesce(endedAt, startedAt) WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM runs)`,
		`INSERT INTO runs(startedAt) SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE NOT EXISTS (SELECT 1 FROM runs WHERE endedAt IS NULL)`,
	} {
		if err := r.exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// messages adds messages from the mailboxes that are missing from the ledger.
func (r *rebuilder) messages(ctx context.Context) error {
	if r.whole["messages"] && r.whole["deliveries"] {
		return nil
	}
	r.res.Missing = append(r.res.Missing, r.in.Found.UnreadMail...)
	added := map[string]bool{}
	for _, m := range r.in.Found.Messages {
		if err := r.message(ctx, m, added); err != nil {
			return fmt.Errorf("import message %s from the mailbox of %s: %w", m.ID, m.To, err)
		}
	}
	if len(added) > 0 {
		r.res.Files["messages"] += len(added)
		r.res.miss("messages: %d are from mailboxes; their senders can no longer be verified", len(added))
	}
	return nil
}

func (r *rebuilder) message(ctx context.Context, m FoundMessage, added map[string]bool) error {
	var session, to string
	err := r.out.QueryRowContext(ctx, `SELECT sessionKey, name FROM members WHERE name = ? COLLATE NOCASE
		ORDER BY removedAt IS NOT NULL, removedAt DESC LIMIT 1`, m.To).Scan(&session, &to)
	if errors.Is(err, sql.ErrNoRows) || err == nil && m.ID == "" {
		return nil // from another program, or for an unknown recipient
	}
	if err != nil {
		return err
	}
	var seq int64
	err = r.out.QueryRowContext(ctx, "SELECT seq FROM messages WHERE id = ?", m.ID).Scan(&seq)
	switch {
	case errors.Is(err, sql.ErrNoRows) && r.whole["messages"]:
		return nil // it was pruned
	case errors.Is(err, sql.ErrNoRows):
		kind := m.Kind
		if kind == "" || kind == team.KindTaskResponse || kind == team.KindTeammateTerminated && m.From != team.SystemName {
			kind = team.KindMessage // the other fields of these kinds are unknown
		}
		if _, err := r.out.ExecContext(ctx, `INSERT INTO messages(id, run, kind, fromAgent, toAgent, requestId, text, summary, at)
			VALUES (?, (SELECT id FROM runs WHERE endedAt IS NULL ORDER BY depth DESC LIMIT 1), ?, ?, ?, ?, ?, ?, ?)`,
			m.ID, kind, m.From, to, m.RequestID, m.Text, m.Summary, m.At); err != nil {
			return err
		}
		added[m.ID] = true
		if err := r.out.QueryRowContext(ctx, "SELECT seq FROM messages WHERE id = ?", m.ID).Scan(&seq); err != nil {
			return err
		}
	case err != nil:
		return err
	case added[m.ID]: // in a second mailbox, so it was a broadcast
		if err := r.exec(ctx, "UPDATE messages SET toAgent = NULL WHERE id = ?", m.ID); err != nil {
			return err
		}
	}
	state, rank := team.Mailed, 2
	if m.Read {
		state = team.Read
	}
	if m.From == team.LeadName {
		rank = 1
	}
	now := time.Now().UnixMilli()
	if err := r.exec(ctx, `INSERT INTO deliveries(message, recipient, session, seq, rank, state, evidence, at)
		VALUES (?, ?, ?, ?, ?, ?, 'found in the mailbox', ?) ON CONFLICT DO UPDATE SET state = excluded.state, evidence = excluded.evidence
		WHERE state = 'posted' OR excluded.state = 'read' AND state IN ('mailed', 'injected', 'accepted')`,
		m.ID, to, session, seq, rank, state, now); err != nil {
		return err
	}
	return nil
}

// references removes dangling references, and recomputes derived values.
func (r *rebuilder) references(ctx context.Context) error {
	if !r.whole["task_deps"] {
		if err := r.exec(ctx, `INSERT OR IGNORE INTO task_deps(task, dependsOn, pos) SELECT t.id, j.value, j.key FROM tasks t, json_each(t.dependsOn) j
			WHERE j.value <> t.id AND j.value IN (SELECT id FROM tasks)`); err != nil {
			return err
		}
	}
	for _, c := range []struct{ q, lost string }{
		{`DELETE FROM task_deps WHERE task NOT IN (SELECT id FROM tasks) OR dependsOn NOT IN (SELECT id FROM tasks)`,
			"tasks: %d dependencies on tasks that are lost"},
		{`DELETE FROM deliveries WHERE message NOT IN (SELECT id FROM messages)`, "messages: %d deliveries of messages that are lost"},
		{`UPDATE messages SET parent = NULL, kind = CASE kind WHEN 'task_response' THEN 'message' ELSE kind END
			WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM messages)`, "messages: %d answers to messages that are lost"},
		{`DELETE FROM intents WHERE approval NOT IN (SELECT id FROM approvals)`, "approvals: %d consequences of approvals that are lost"},
		{`UPDATE tasks SET review = NULL WHERE review IS NOT NULL AND review NOT IN (SELECT id FROM approvals)`, "tasks: %d reviews that are lost"},
		{`UPDATE tasks SET verification = NULL WHERE verification IS NOT NULL AND verification NOT IN (SELECT id FROM verifications)`, "tasks: %d verifications that are lost"},
	} {
		n, err := r.count(ctx, c.q)
		if err != nil {
			return err
		}
		if n > 0 {
			r.res.miss(c.lost, n)
		}
	}
	kept, err := r.column(ctx, sqlUnreleasedIDs)
	if err != nil {
		return err
	}
	for _, id := range kept {
		if err := r.exec(ctx, sqlTaskFree, id); err != nil {
			return err
		}
		r.res.miss("task %s: its owner is no longer known; it is pending again", id)
	}
	ids, err := r.column(ctx, sqlDriftedIDs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := r.exec(ctx, sqlDepsMirror, id); err != nil {
			return err
		}
	}
	return nil
}
