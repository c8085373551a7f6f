-- The first schema. tasks and members begin with the columns of the design
-- document, by its names; what teamctl adds follows. Times are Unix milliseconds.

CREATE TABLE tasks (
  id          TEXT PRIMARY KEY,
  subject     TEXT NOT NULL,
  description TEXT NOT NULL,
  activeForm  TEXT,
  status      TEXT NOT NULL CHECK (status IN ('pending', 'claimed', 'in_progress', 'completed', 'failed')),
  owner       TEXT,                    -- session key of the claiming agent; of the assignee while pending
  dependsOn   TEXT CHECK (dependsOn IS NULL OR json_valid(dependsOn)),   -- JSON array of task ids
  blockedBy   TEXT CHECK (blockedBy IS NULL OR json_valid(blockedBy)),   -- the ones not completed yet
  metadata    TEXT CHECK (metadata IS NULL OR json_type(metadata) = 'object'),
  createdAt   INTEGER NOT NULL,
  claimedAt   INTEGER,
  completedAt INTEGER,

  seq         INTEGER GENERATED ALWAYS AS (CAST(id AS INTEGER)) STORED,
  priority    INTEGER NOT NULL DEFAULT 0,
  attempt     INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  leaseUntil  INTEGER,
  unmet       INTEGER NOT NULL DEFAULT 0 CHECK (unmet >= 0), -- the length of blockedBy
  verify      TEXT NOT NULL DEFAULT '',
  ownerName   TEXT,
  startedAt   INTEGER,
  result      TEXT CHECK (result IS NULL OR json_type(result) = 'object'),

  CHECK (owner IS NOT NULL OR status NOT IN ('claimed', 'in_progress'))
) STRICT;

CREATE INDEX idx_tasks_status  ON tasks(status);
CREATE INDEX idx_tasks_owner   ON tasks(owner);
CREATE INDEX idx_tasks_created ON tasks(createdAt);
CREATE INDEX idx_tasks_seq     ON tasks(seq);
-- The next claimable task is the first entry of one of these two, whatever the size.
CREATE INDEX idx_tasks_ready    ON tasks(priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND owner IS NULL;
CREATE INDEX idx_tasks_assigned ON tasks(owner, priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND owner IS NOT NULL;
CREATE INDEX idx_tasks_lease    ON tasks(leaseUntil) WHERE leaseUntil IS NOT NULL;

CREATE TABLE task_deps (
  task      TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  dependsOn TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  pos       INTEGER NOT NULL,          -- its place in the task's dependsOn
  PRIMARY KEY (task, dependsOn),
  CHECK (task <> dependsOn)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_task_deps_dependsOn ON task_deps(dependsOn, task);

-- blockedBy and unmet follow the status of the dependencies in the same
-- statement, so that they are right for every reader and every writer.
CREATE TRIGGER tasks_completed AFTER UPDATE OF status ON tasks
WHEN NEW.status = 'completed' AND OLD.status <> 'completed'
BEGIN
  UPDATE tasks SET unmet = unmet - 1,
    blockedBy = (SELECT json_group_array(value) FROM json_each(tasks.blockedBy) WHERE value <> NEW.id)
  WHERE id IN (SELECT task FROM task_deps WHERE dependsOn = NEW.id);
END;
CREATE TRIGGER tasks_reopened AFTER UPDATE OF status ON tasks
WHEN NEW.status <> 'completed' AND OLD.status = 'completed'
BEGIN
  UPDATE tasks SET unmet = unmet + 1, blockedBy = json_insert(blockedBy, '$[#]', NEW.id)
  WHERE id IN (SELECT task FROM task_deps WHERE dependsOn = NEW.id);
END;

CREATE TABLE members (
  sessionKey TEXT PRIMARY KEY,
  agentId    TEXT NOT NULL,
  name       TEXT,
  role       TEXT CHECK (role IN ('lead', 'member')),
  joinedAt   INTEGER NOT NULL,

  teamRole   TEXT NOT NULL DEFAULT 'executor'
             CHECK (teamRole IN ('leader', 'executor', 'reviewer', 'observer', 'operator')),
  removedAt  INTEGER,
  spec       TEXT NOT NULL DEFAULT '{}' CHECK (json_type(spec) = 'object'),
  color      TEXT NOT NULL DEFAULT '',
  desired    TEXT NOT NULL DEFAULT 'running' CHECK (desired IN ('running', 'stopped')),
  observed   TEXT NOT NULL DEFAULT 'pending' CHECK (observed IN
             ('pending', 'starting', 'running', 'exited', 'backoff', 'failed', 'completed', 'killed')),
  activity   TEXT NOT NULL DEFAULT 'unknown' CHECK (activity IN
             ('unknown', 'working', 'idle', 'waiting', 'limited')),
  activityAt INTEGER NOT NULL DEFAULT 0,
  ready      INTEGER NOT NULL DEFAULT 0 CHECK (ready IN (0, 1)),
  generation TEXT NOT NULL DEFAULT '',
  pid        INTEGER NOT NULL DEFAULT 0,
  paneId     TEXT NOT NULL DEFAULT '',
  startedAt  INTEGER NOT NULL DEFAULT 0,
  restarts   INTEGER NOT NULL DEFAULT 0,
  failures   INTEGER NOT NULL DEFAULT 0,
  nextStart  INTEGER NOT NULL DEFAULT 0,
  exitText   TEXT NOT NULL DEFAULT '',
  reason     TEXT NOT NULL DEFAULT '',
  worktree   TEXT NOT NULL DEFAULT '',
  branch     TEXT NOT NULL DEFAULT '',
  base       TEXT NOT NULL DEFAULT ''
) STRICT;
-- A name is free again when its member has left; mail is bound to the session.
CREATE UNIQUE INDEX idx_members_name ON members(name COLLATE NOCASE) WHERE removedAt IS NULL;

CREATE TABLE runs (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  startedAt         INTEGER NOT NULL,
  endedAt           INTEGER,
  scratchpad        TEXT NOT NULL DEFAULT '{}' CHECK (json_type(scratchpad) = 'object'),
  scratchpadVersion INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER runs_scratchpad BEFORE UPDATE OF scratchpad ON runs
WHEN NEW.scratchpadVersion <> OLD.scratchpadVersion + 1
BEGIN SELECT RAISE(ABORT, 'the scratchpad changes by merge only'); END;

CREATE TABLE messages (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT NOT NULL UNIQUE,
  run         INTEGER NOT NULL REFERENCES runs(id),
  kind        TEXT NOT NULL CHECK (kind IN (
              'message', 'broadcast', 'task_request', 'task_response', 'info', 'error',
              'shutdown_request', 'shutdown_approved', 'shutdown_rejected', 'idle_notification',
              'task_assignment', 'task_completed', 'permission_request', 'permission_response',
              'plan_approval_request', 'plan_approval_response')),
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
  CHECK (kind <> 'task_response' OR parent IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX idx_messages_idem ON messages(run, fromAgent, idemKey) WHERE idemKey IS NOT NULL;
CREATE INDEX idx_messages_parent ON messages(parent) WHERE parent IS NOT NULL;
-- What counts against the cap of a run: conversation, not protocol.
CREATE INDEX idx_messages_cap ON messages(run)
  WHERE kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error');
CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages
BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;
CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages
BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE TABLE deliveries (
  message   TEXT NOT NULL REFERENCES messages(id),
  recipient TEXT NOT NULL COLLATE NOCASE,
  session   TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  rank      INTEGER NOT NULL,          -- 0 shutdown, 1 from the lead, 2 from peers
  state     TEXT NOT NULL CHECK (state IN
            ('posted', 'mailed', 'held', 'injected', 'accepted', 'read', 'answered', 'dropped')),
  reason    TEXT NOT NULL DEFAULT '',
  evidence  TEXT NOT NULL DEFAULT '',
  at        INTEGER NOT NULL,
  PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_deliveries_posted  ON deliveries(rank, seq) WHERE state = 'posted';
CREATE INDEX idx_deliveries_session ON deliveries(session, seq);

CREATE TABLE events (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  id     TEXT NOT NULL DEFAULT '',
  before TEXT NOT NULL DEFAULT '',
  after  TEXT NOT NULL DEFAULT '',
  data   TEXT CHECK (data IS NULL OR json_valid(data))
) STRICT;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;

CREATE TABLE team (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  key         TEXT NOT NULL,
  name        TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  repo        TEXT NOT NULL DEFAULT '',
  base        TEXT NOT NULL DEFAULT '',
  worktreeDir TEXT NOT NULL DEFAULT '',
  createdAt   INTEGER NOT NULL,
  leadSession TEXT NOT NULL,
  status      TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'shutdown')),
  hidden      TEXT NOT NULL DEFAULT '[]' CHECK (json_type(hidden) = 'array')
) STRICT;

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters(name, value) VALUES ('task', 0);

-- Results of operations whose answer may get lost on its way to the caller. Ids
-- begin with the time, so new ones go to the end and old ones are at the front.
CREATE TABLE applied_ops (
  id     TEXT PRIMARY KEY,
  at     INTEGER NOT NULL,
  result TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The names that the design documents use for reading.
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
