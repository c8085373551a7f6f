-- The team itself may speak: a notice is from "system", who is no member and cannot
-- become one. SQLite changes a CHECK by making the table anew; the foreign keys rest
-- meanwhile and are checked before the end of the transaction.

DROP VIEW team_messages;
DROP VIEW v_team_run_conversation;

CREATE TABLE messages_new (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,
  run         INTEGER NOT NULL REFERENCES runs(id),
  kind        TEXT NOT NULL CHECK (kind IN (
              'message', 'broadcast', 'task_request', 'task_response', 'info', 'error',
              'shutdown_request', 'shutdown_approved', 'shutdown_rejected', 'idle_notification',
              'task_assignment', 'task_completed', 'permission_request', 'permission_response',
              'plan_approval_request', 'plan_approval_response', 'teammate_terminated')),
  fromAgent   TEXT NOT NULL,
  fromSession TEXT NOT NULL DEFAULT '',
  toAgent     TEXT,                    -- NULL: a broadcast
  parent      TEXT REFERENCES messages(id),
  hop         INTEGER NOT NULL DEFAULT 0,
  idemKey     TEXT,
  requestId   TEXT NOT NULL DEFAULT '',
  text        TEXT NOT NULL,
  summary     TEXT NOT NULL DEFAULT '',
  payload     TEXT CHECK (payload IS NULL OR json_valid(payload)),
  at          INTEGER NOT NULL,
  CHECK (kind <> 'task_response' OR parent IS NOT NULL),
  CHECK (kind <> 'teammate_terminated' OR fromAgent = 'system')
) STRICT;
INSERT INTO messages_new(seq, id, run, kind, fromAgent, fromSession, toAgent, parent, hop, idemKey, requestId, text, summary, payload, at)
  SELECT seq, id, run, kind, fromAgent, fromSession, toAgent, parent, hop, idemKey, requestId, text, summary, payload, at
  FROM messages ORDER BY seq;
-- Numbers are not given out again, even where the last rows were pruned.
DELETE FROM sqlite_sequence WHERE name = 'messages_new';
INSERT INTO sqlite_sequence(name, seq) SELECT 'messages_new', seq FROM sqlite_sequence WHERE name = 'messages';
DROP TABLE messages;
ALTER TABLE messages_new RENAME TO messages;

CREATE UNIQUE INDEX idx_messages_idem ON messages(run, fromAgent, idemKey) WHERE idemKey IS NOT NULL;
CREATE INDEX idx_messages_parent ON messages(parent) WHERE parent IS NOT NULL;
CREATE INDEX idx_messages_cap ON messages(run)
  WHERE kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error');
CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;
CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM counters WHERE name = 'pruning' AND value > OLD.at)
BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE VIEW team_messages AS
  SELECT id, run AS team_run_id, fromAgent AS from_agent_id, toAgent AS to_agent_id, kind,
         coalesce(payload, json_object('text', text)) AS payload,
         parent AS parent_message_id, at AS occurred_at
  FROM messages;
CREATE VIEW v_team_run_conversation AS
  WITH RECURSIVE thread(id, root, depth) AS (
    SELECT id, id, 0 FROM messages WHERE parent IS NULL
    UNION ALL
    SELECT m.id, t.root, t.depth + 1 FROM messages m JOIN thread t ON m.parent = t.id WHERE t.depth < 50
  )
  SELECT m.id, m.run AS team_run_id, m.seq, t.root AS root_message_id, t.depth,
         m.fromAgent AS from_agent_id, m.toAgent AS to_agent_id, m.kind, m.text,
         m.parent AS parent_message_id, m.at AS occurred_at
  FROM thread t JOIN messages m ON m.id = t.id;

-- The lead was told of this idle period of an agent that cannot say so itself. It ends
-- with other work, not with a supervisor that has to look anew.
ALTER TABLE members ADD COLUMN idleTold INTEGER NOT NULL DEFAULT 0 CHECK (idleTold IN (0, 1));
