-- version 25
-- Made by go generate ./ledger from the migrations, which say what each part is for.
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
  result      TEXT CHECK (result IS NULL OR json_type(result) = 'object'), maxRetries   INTEGER NOT NULL DEFAULT 0 CHECK (maxRetries >= 0), retryBackoff INTEGER NOT NULL DEFAULT 0 CHECK (retryBackoff >= 0), retries      INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0), notBefore    INTEGER NOT NULL DEFAULT 0 CHECK (notBefore >= 0), review INTEGER REFERENCES approvals(id), verifyBy TEXT NOT NULL DEFAULT '', verification INTEGER REFERENCES verifications(id),

  CHECK (owner IS NOT NULL OR status NOT IN ('claimed', 'in_progress'))
) STRICT;
CREATE INDEX idx_tasks_owner   ON tasks(owner);
CREATE INDEX idx_tasks_created ON tasks(createdAt);
CREATE INDEX idx_tasks_seq     ON tasks(seq);
CREATE INDEX idx_tasks_lease    ON tasks(leaseUntil) WHERE leaseUntil IS NOT NULL;
CREATE TABLE task_deps (
  task      TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  dependsOn TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
  pos       INTEGER NOT NULL,          -- its place in the task's dependsOn
  PRIMARY KEY (task, dependsOn),
  CHECK (task <> dependsOn)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_task_deps_dependsOn ON task_deps(dependsOn, task);
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
, tokenHash TEXT NOT NULL DEFAULT '', activityFor TEXT NOT NULL DEFAULT '', activityUntil INTEGER NOT NULL DEFAULT 0, stopOrder TEXT NOT NULL DEFAULT '', idleTold INTEGER NOT NULL DEFAULT 0 CHECK (idleTold IN (0, 1)), endedAt INTEGER NOT NULL DEFAULT 0, turnError TEXT NOT NULL DEFAULT '', failedTold INTEGER NOT NULL DEFAULT 0 CHECK (failedTold IN (0, 1))) STRICT;
CREATE UNIQUE INDEX idx_members_name ON members(name COLLATE NOCASE) WHERE removedAt IS NULL;
CREATE TABLE runs (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  startedAt         INTEGER NOT NULL,
  endedAt           INTEGER,
  scratchpad        TEXT NOT NULL DEFAULT '{}' CHECK (json_type(scratchpad) = 'object'),
  scratchpadVersion INTEGER NOT NULL DEFAULT 0
, name   TEXT NOT NULL DEFAULT '', parent INTEGER REFERENCES runs(id), depth  INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 8)) STRICT;
CREATE TRIGGER runs_scratchpad BEFORE UPDATE OF scratchpad ON runs
WHEN NEW.scratchpadVersion <> OLD.scratchpadVersion + 1
BEGIN SELECT RAISE(ABORT, 'the scratchpad changes by merge only'); END;
CREATE TABLE events (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  id     TEXT NOT NULL DEFAULT '',
  before TEXT NOT NULL DEFAULT '',
  after  TEXT NOT NULL DEFAULT '',
  data   TEXT CHECK (data IS NULL OR json_valid(data))
, via TEXT NOT NULL DEFAULT '') STRICT;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
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
CREATE TABLE applied_ops (
  id     TEXT PRIMARY KEY,
  at     INTEGER NOT NULL,
  result TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE file_leases (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  holder  TEXT NOT NULL,               -- session key
  name    TEXT NOT NULL,
  glob    TEXT NOT NULL,
  why     TEXT NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  UNIQUE (holder, glob)
) STRICT;
CREATE TABLE touched_files (
  session TEXT NOT NULL,
  path    TEXT NOT NULL,
  dirty   INTEGER NOT NULL CHECK (dirty IN (0, 1)), -- not committed
  PRIMARY KEY (session, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_touched_files_path ON touched_files(path);
CREATE TABLE overlaps (
  a    TEXT NOT NULL,
  b    TEXT NOT NULL,
  path TEXT NOT NULL,
  at   INTEGER NOT NULL,
  PRIMARY KEY (a, b, path),
  CHECK (a < b)
) STRICT, WITHOUT ROWID;
CREATE TABLE merges (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  member   TEXT NOT NULL,
  session  TEXT NOT NULL,
  branch   TEXT NOT NULL,
  tip      TEXT NOT NULL,              -- the commit that was asked for
  target   TEXT NOT NULL,              -- short name of the branch it goes into
  strategy TEXT NOT NULL CHECK (strategy IN ('merge', 'rebase', 'squash')),
  gates    TEXT NOT NULL CHECK (json_type(gates) = 'array'),
  options  TEXT NOT NULL CHECK (json_type(options) = 'object'),
  state    TEXT NOT NULL CHECK (state IN
           ('queued', 'gating', 'landing', 'landed', 'contained', 'conflict', 'red', 'failed', 'canceled')),
  old      TEXT NOT NULL DEFAULT '',   -- landing: where the target was
  new      TEXT NOT NULL DEFAULT '',   -- landing: where it goes
  files    TEXT NOT NULL DEFAULT '[]' CHECK (json_type(files) = 'array'),
  log      TEXT NOT NULL DEFAULT '',
  why      TEXT NOT NULL DEFAULT '',
  task     TEXT NOT NULL DEFAULT '',
  askedBy  TEXT NOT NULL,
  askedAt  INTEGER NOT NULL,
  endedAt  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX idx_merges_open ON merges(branch, target) WHERE state IN ('queued', 'gating', 'landing');
CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL CHECK (json_valid(value))
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_tasks_ready    ON tasks(priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL;
CREATE INDEX idx_tasks_assigned ON tasks(owner, priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL;
CREATE INDEX idx_tasks_later    ON tasks(notBefore) WHERE notBefore > 0;
CREATE UNIQUE INDEX idx_runs_open ON runs(depth) WHERE endedAt IS NULL;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM counters WHERE name = 'pruning' AND value > OLD.at)
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TABLE approvals (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  requestId  TEXT NOT NULL UNIQUE,     -- as it travels in the protocol messages
  run        INTEGER NOT NULL REFERENCES runs(id),
  kind       TEXT NOT NULL CHECK (kind IN ('permission', 'plan', 'review', 'delegation')),
  state      TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'rejected', 'expired')),
  session    TEXT NOT NULL,            -- who asks
  name       TEXT NOT NULL,
  answerer   TEXT NOT NULL DEFAULT 'person' CHECK (answerer IN
             ('person', 'leader', 'executor', 'reviewer', 'observer', 'operator')),
  task       TEXT NOT NULL DEFAULT '',
  attempt    INTEGER NOT NULL DEFAULT 0,
  subject    TEXT NOT NULL,
  payload    TEXT CHECK (payload IS NULL OR json_valid(payload)),
  message    TEXT NOT NULL DEFAULT '', -- the request's message, where it travelled as one
  feedback   TEXT NOT NULL DEFAULT '',
  answeredBy TEXT NOT NULL DEFAULT '',
  createdAt  INTEGER NOT NULL,
  deadline   INTEGER NOT NULL DEFAULT 0, -- 0: none
  answeredAt INTEGER NOT NULL DEFAULT 0, answeredVia TEXT NOT NULL DEFAULT '',
  CHECK ((state = 'pending') = (answeredAt = 0))
) STRICT;
CREATE UNIQUE INDEX idx_approvals_plan   ON approvals(session) WHERE kind = 'plan' AND state = 'pending';
CREATE UNIQUE INDEX idx_approvals_review ON approvals(task) WHERE kind = 'review' AND state = 'pending';
CREATE INDEX idx_approvals_pending       ON approvals(id) WHERE state = 'pending';
CREATE TRIGGER approvals_answered BEFORE UPDATE ON approvals
WHEN OLD.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'an approval is answered once'); END;
CREATE TRIGGER tasks_review_left AFTER UPDATE OF status ON tasks
WHEN OLD.review IS NOT NULL AND NEW.status = 'pending'
BEGIN
  UPDATE approvals SET state = 'rejected', feedback = 'the task was taken back', answeredBy = 'supervisor',
    answeredAt = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id = OLD.review AND state = 'pending';
  UPDATE tasks SET review = NULL WHERE id = NEW.id;
END;
CREATE TRIGGER tasks_review_gone AFTER DELETE ON tasks
WHEN OLD.review IS NOT NULL
BEGIN
  UPDATE approvals SET state = 'rejected', feedback = 'the task was deleted', answeredBy = 'supervisor',
    answeredAt = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id = OLD.review AND state = 'pending';
END;
CREATE TABLE mirrored (
  bridge TEXT NOT NULL,
  kind   TEXT NOT NULL CHECK (kind IN ('member', 'task', 'mail', 'draft', 'stop')),
  there  TEXT NOT NULL,
  here   TEXT NOT NULL,
  ours   INTEGER NOT NULL CHECK (ours IN (0, 1)),
  data   TEXT CHECK (data IS NULL OR json_valid(data)),
  at     INTEGER NOT NULL,
  PRIMARY KEY (bridge, kind, there)
) STRICT, WITHOUT ROWID;
CREATE TABLE "messages" (
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
CREATE INDEX idx_messages_parent ON messages(parent) WHERE parent IS NOT NULL;
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
CREATE UNIQUE INDEX idx_messages_idem ON messages(run, fromAgent, idemKey, fromSession) WHERE idemKey IS NOT NULL;
CREATE TRIGGER runs_scratchpad_version BEFORE UPDATE OF scratchpadVersion ON runs
WHEN NEW.scratchpadVersion <> OLD.scratchpadVersion + 1
BEGIN SELECT RAISE(ABORT, 'the scratchpad changes by merge only'); END;
CREATE TABLE intents (
  approval INTEGER PRIMARY KEY REFERENCES approvals(id),
  what     TEXT NOT NULL CHECK (json_valid(what)),
  outcome  TEXT CHECK (outcome IS NULL OR json_valid(outcome)) -- NULL: it is to be done
) STRICT;
CREATE INDEX idx_intents_open ON intents(approval) WHERE outcome IS NULL;
CREATE TRIGGER intents_ended BEFORE UPDATE ON intents
WHEN OLD.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an intent ends once'); END;
CREATE INDEX idx_messages_cap ON messages(run)
  WHERE kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error') AND fromAgent <> 'system';
CREATE INDEX idx_tasks_status ON tasks(status, completedAt, seq);
CREATE TABLE verifications (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  task       TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  session    TEXT NOT NULL,              -- whose work it is
  name       TEXT NOT NULL,
  command    TEXT NOT NULL,
  verifyBy   TEXT NOT NULL,
  result     TEXT NOT NULL CHECK (json_valid(result)), -- what the owner says of the task
  reviewed   INTEGER NOT NULL DEFAULT 0 CHECK (reviewed IN (0, 1)), -- 1: no review comes after it
  state      TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'passed', 'failed', 'dropped')),
  generation TEXT NOT NULL DEFAULT '',   -- what its processes are known by, from before the first until after the last
  place      TEXT NOT NULL DEFAULT '',   -- their control group
  exitCode   INTEGER NOT NULL DEFAULT 0,
  error      TEXT NOT NULL DEFAULT '',   -- why it failed, and the end of its output
  createdAt  INTEGER NOT NULL,
  endedAt    INTEGER NOT NULL DEFAULT 0,
  CHECK ((state = 'open') = (endedAt = 0))
) STRICT;
CREATE UNIQUE INDEX idx_verifications_open ON verifications(task) WHERE state = 'open';
CREATE INDEX idx_verifications_todo ON verifications(id) WHERE state = 'open' OR generation <> '';
CREATE INDEX idx_verifications_task ON verifications(task, attempt);
CREATE TRIGGER tasks_verification_left AFTER UPDATE OF status ON tasks
WHEN OLD.verification IS NOT NULL AND NEW.status <> 'in_progress'
BEGIN
  UPDATE verifications SET state = 'dropped', endedAt = CAST(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE id = OLD.verification AND state = 'open';
  UPDATE tasks SET verification = NULL WHERE id = NEW.id;
END;
CREATE TRIGGER tasks_verification_gone AFTER DELETE ON tasks
WHEN OLD.verification IS NOT NULL
BEGIN
  UPDATE verifications SET state = 'dropped', endedAt = CAST(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE id = OLD.verification AND state = 'open';
END;
CREATE INDEX idx_messages_idle ON messages(fromAgent, seq) WHERE kind = 'idle_notification';
CREATE TABLE task_counts (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  pending     INTEGER NOT NULL DEFAULT 0,
  ready       INTEGER NOT NULL DEFAULT 0,
  claimed     INTEGER NOT NULL DEFAULT 0,
  in_progress INTEGER NOT NULL DEFAULT 0,
  completed   INTEGER NOT NULL DEFAULT 0,
  failed      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER tasks_counted_new AFTER INSERT ON tasks
BEGIN
  UPDATE task_counts SET
    pending     = pending     + (NEW.status = 'pending'),
    ready       = ready       + (NEW.status = 'pending' AND NEW.unmet = 0 AND NEW.notBefore = 0),
    claimed     = claimed     + (NEW.status = 'claimed'),
    in_progress = in_progress + (NEW.status = 'in_progress'),
    completed   = completed   + (NEW.status = 'completed'),
    failed      = failed      + (NEW.status = 'failed');
END;
CREATE TRIGGER tasks_counted AFTER UPDATE OF status, unmet, notBefore ON tasks
WHEN OLD.status <> NEW.status OR NEW.status = 'pending'
BEGIN
  UPDATE task_counts SET
    pending     = pending     + (NEW.status = 'pending')     - (OLD.status = 'pending'),
    ready       = ready       + (NEW.status = 'pending' AND NEW.unmet = 0 AND NEW.notBefore = 0)
                              - (OLD.status = 'pending' AND OLD.unmet = 0 AND OLD.notBefore = 0),
    claimed     = claimed     + (NEW.status = 'claimed')     - (OLD.status = 'claimed'),
    in_progress = in_progress + (NEW.status = 'in_progress') - (OLD.status = 'in_progress'),
    completed   = completed   + (NEW.status = 'completed')   - (OLD.status = 'completed'),
    failed      = failed      + (NEW.status = 'failed')      - (OLD.status = 'failed');
END;
CREATE TRIGGER tasks_counted_gone AFTER DELETE ON tasks
BEGIN
  UPDATE task_counts SET
    pending     = pending     - (OLD.status = 'pending'),
    ready       = ready       - (OLD.status = 'pending' AND OLD.unmet = 0 AND OLD.notBefore = 0),
    claimed     = claimed     - (OLD.status = 'claimed'),
    in_progress = in_progress - (OLD.status = 'in_progress'),
    completed   = completed   - (OLD.status = 'completed'),
    failed      = failed      - (OLD.status = 'failed');
END;
CREATE INDEX idx_tasks_command ON tasks(priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL
    AND trim(coalesce(json_extract(metadata, '$.run'), ''), char(9, 10, 13, 32)) <> '';
CREATE INDEX idx_tasks_given ON tasks(owner, seq) WHERE status = 'pending' AND owner IS NOT NULL;
CREATE TABLE renames (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,               -- of the member that was named
  was     TEXT NOT NULL COLLATE NOCASE,
  name    TEXT NOT NULL COLLATE NOCASE,
  state   TEXT NOT NULL CHECK (state IN ('begun', 'applied', 'done')),
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_renames_was     ON renames(was, id);
CREATE INDEX idx_renames_session ON renames(session);
CREATE INDEX idx_renames_open    ON renames(id) WHERE state <> 'done';
CREATE TABLE agent_specs (
  id          TEXT PRIMARY KEY,
  name        TEXT NOT NULL UNIQUE COLLATE NOCASE,
  config_json TEXT NOT NULL CHECK (json_type(config_json) = 'object'),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions (
  session_key       TEXT PRIMARY KEY,
  agent_id          TEXT NOT NULL,            -- its spec at birth
  active_agent_id   TEXT NOT NULL,
  provider_override TEXT NOT NULL DEFAULT '',
  model_override    TEXT NOT NULL DEFAULT '',
  deliver           INTEGER NOT NULL DEFAULT 0 CHECK (deliver IN (0, 1)),
  owner_session_key TEXT REFERENCES sessions(session_key),
  channel           TEXT NOT NULL DEFAULT 'internal',
  routing           TEXT CHECK (routing IS NULL OR json_type(routing) = 'object'),
  label             TEXT NOT NULL DEFAULT '',
  depth             INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
  member            TEXT NOT NULL,            -- session key of the member whose process runs it
  state             TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
  last_seq          INTEGER NOT NULL DEFAULT 0, -- of its newest entry
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  CHECK ((provider_override = '') = (model_override = '')),
  CHECK ((owner_session_key IS NULL) = (depth = 0))
) STRICT;
CREATE INDEX idx_sessions_owner  ON sessions(owner_session_key) WHERE owner_session_key IS NOT NULL;
CREATE INDEX idx_sessions_member ON sessions(member);
CREATE TABLE session_entries (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session    TEXT NOT NULL REFERENCES sessions(session_key),
  seq        INTEGER NOT NULL CHECK (seq > 0),
  kind       TEXT NOT NULL CHECK (kind IN ('user', 'assistant', 'tool_result', 'event', 'compaction')),
  content    TEXT NOT NULL,
  raw        TEXT,                             -- the provider's own bytes
  meta_json  TEXT CHECK (meta_json IS NULL OR json_type(meta_json) = 'object'),
  channel    TEXT NOT NULL,
  provenance TEXT CHECK (provenance IS NULL OR json_type(provenance) = 'object'),
  source     TEXT,                             -- what it was made of, once in a session
  job        INTEGER,
  at         INTEGER NOT NULL,
  UNIQUE (session, seq)
) STRICT;
CREATE UNIQUE INDEX idx_session_entries_source ON session_entries(session, source) WHERE source IS NOT NULL;
CREATE TRIGGER session_entries_fixed BEFORE UPDATE ON session_entries
BEGIN
  SELECT RAISE(ABORT, 'session_entries is append-only');
END;
CREATE TRIGGER session_entries_kept BEFORE DELETE ON session_entries
WHEN (SELECT state FROM sessions WHERE session_key = OLD.session) <> 'closed'
BEGIN
  SELECT RAISE(ABORT, 'session_entries is append-only');
END;
CREATE TABLE turn_jobs (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  session     TEXT NOT NULL REFERENCES sessions(session_key),
  lane        TEXT NOT NULL,
  cause       TEXT NOT NULL CHECK (cause IN ('message', 'backlog', 'announce', 'wake')),
  state       TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'steered')),
  rank        INTEGER NOT NULL DEFAULT 0,      -- 1: before everything that waits in its session, and takes no backlog
  attempt     INTEGER NOT NULL DEFAULT 0,
  crashes     INTEGER NOT NULL DEFAULT 0,      -- ends of its process in a row without a new entry
  start_seq   INTEGER NOT NULL DEFAULT 0,      -- newest entry of the session at the latest start
  generation  TEXT NOT NULL DEFAULT '',
  lease_until INTEGER NOT NULL DEFAULT 0,
  not_before  INTEGER NOT NULL DEFAULT 0,
  yielded     INTEGER NOT NULL DEFAULT 0 CHECK (yielded IN (0, 1)), -- waits, and leaves its place in the lane to others
  hop         INTEGER NOT NULL DEFAULT 0,
  input       TEXT,                            -- user entry with which it begins
  cancel      TEXT,                            -- why it is to end
  reason      TEXT NOT NULL DEFAULT '',        -- why it waits, or how it ended
  effective   TEXT CHECK (effective IS NULL OR json_type(effective) = 'object'),
  usage       TEXT CHECK (usage IS NULL OR json_type(usage) = 'object'),
  result      TEXT CHECK (result IS NULL OR json_type(result) = 'object'),
  created_at  INTEGER NOT NULL,
  started_at  INTEGER NOT NULL DEFAULT 0,
  ended_at    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX idx_turn_jobs_running ON turn_jobs(session) WHERE state = 'running';
CREATE INDEX idx_turn_jobs_lane    ON turn_jobs(lane) WHERE state = 'running' AND yielded = 0;
CREATE INDEX idx_turn_jobs_queued  ON turn_jobs(session, rank DESC, id) WHERE state = 'queued';
CREATE INDEX idx_turn_jobs_session ON turn_jobs(session, id);
CREATE TABLE tool_calls (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  session   TEXT NOT NULL REFERENCES sessions(session_key),
  job       INTEGER NOT NULL REFERENCES turn_jobs(id),
  asked     INTEGER NOT NULL,                  -- seq of the entry that asks for it
  call_id   TEXT NOT NULL,
  name      TEXT NOT NULL,
  input     TEXT NOT NULL,                     -- as the model wrote it
  read_only INTEGER NOT NULL CHECK (read_only IN (0, 1)),
  state     TEXT NOT NULL DEFAULT 'asked' CHECK (state IN ('asked', 'begun', 'ended', 'lost')),
  entry     INTEGER,                           -- seq of its result
  begun_at  INTEGER NOT NULL DEFAULT 0,
  ended_at  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session, asked, call_id),
  CHECK ((entry IS NULL) = (state IN ('asked', 'begun')))
) STRICT;
CREATE INDEX idx_tool_calls_open ON tool_calls(session) WHERE state IN ('asked', 'begun');
CREATE INDEX idx_tool_calls_job  ON tool_calls(job);
CREATE TABLE session_backlog (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session    TEXT NOT NULL REFERENCES sessions(session_key),
  kind       TEXT NOT NULL CHECK (kind IN ('message', 'finish', 'resume')),
  text       TEXT NOT NULL,
  meta_json  TEXT CHECK (meta_json IS NULL OR json_type(meta_json) = 'object'),
  provenance TEXT CHECK (provenance IS NULL OR json_type(provenance) = 'object'),
  source     TEXT,
  message    TEXT,                             -- whose delivery is accepted with the entry
  recipient  TEXT,
  hop        INTEGER NOT NULL DEFAULT 0,
  entry      INTEGER,                          -- seq of the entry of the transcript that has it
  at         INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_session_backlog ON session_backlog(session, id) WHERE entry IS NULL;
CREATE UNIQUE INDEX idx_session_backlog_source ON session_backlog(session, source) WHERE source IS NOT NULL AND kind <> 'resume';
CREATE TABLE session_announces (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  key       TEXT NOT NULL UNIQUE,
  parent    TEXT NOT NULL REFERENCES sessions(session_key),
  child     TEXT NOT NULL REFERENCES sessions(session_key),
  text      TEXT NOT NULL,                     -- what the parent's transcript gets
  meta_json TEXT NOT NULL CHECK (json_type(meta_json) = 'object'),
  hop       INTEGER NOT NULL,
  waits     INTEGER NOT NULL DEFAULT 0 CHECK (waits IN (0, 1)), -- the parent's backlog was full
  job       INTEGER,
  at        INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_session_announces_job  ON session_announces(job) WHERE job IS NOT NULL;
CREATE INDEX idx_session_announces_next ON session_announces(parent) WHERE job IS NULL;
CREATE TABLE "deliveries" (
  message   TEXT NOT NULL REFERENCES messages(id),
  recipient TEXT NOT NULL COLLATE NOCASE,
  session   TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  rank      INTEGER NOT NULL,          -- 0 shutdown, 1 from the lead, 2 from peers
  state     TEXT NOT NULL CHECK (state IN
            ('posted', 'mailed', 'held', 'injected', 'unknown', 'accepted', 'read', 'answered', 'dropped')),
  reason    TEXT NOT NULL DEFAULT '',
  evidence  TEXT NOT NULL DEFAULT '',
  at        INTEGER NOT NULL,
  PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_deliveries_posted  ON deliveries(rank, seq) WHERE state = 'posted';
CREATE INDEX idx_deliveries_session ON deliveries(session, seq);
CREATE INDEX idx_deliveries_open ON deliveries(session, rank, seq, state)
  WHERE state IN ('posted', 'mailed', 'held', 'injected', 'unknown');
CREATE TABLE review_comments (
  session    TEXT NOT NULL,            -- of the member whose changes they are about
  round      INTEGER NOT NULL,
  number     INTEGER NOT NULL,         -- in the round, from 1
  author     TEXT NOT NULL,
  path       TEXT NOT NULL,
  first      INTEGER NOT NULL,
  last       INTEGER NOT NULL,
  old        INTEGER NOT NULL CHECK (old IN (0, 1)), -- the lines are those of the base
  quote      TEXT NOT NULL DEFAULT '',
  above      TEXT NOT NULL DEFAULT '',
  below      TEXT NOT NULL DEFAULT '',
  text       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('draft', 'open', 'asked', 'handled')),
  answer     TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL,
  answeredAt INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, round, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_review_drafts ON review_comments(session, author) WHERE state = 'draft';
CREATE TABLE review_rounds (
  session TEXT NOT NULL,
  round   INTEGER NOT NULL,
  author  TEXT NOT NULL,
  message TEXT NOT NULL DEFAULT '',
  task    TEXT NOT NULL DEFAULT '',
  tip     TEXT NOT NULL DEFAULT '',    -- commit with what the author saw
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE reviewed_files (
  session TEXT NOT NULL,
  author  TEXT NOT NULL,
  path    TEXT NOT NULL,
  hash    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, author, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_deliveries_dropped ON deliveries(seq) WHERE state = 'dropped' AND recipient <> 'team-lead';
INSERT INTO counters VALUES ('task', 0);
INSERT INTO task_counts VALUES (1, 0, 0, 0, 0, 0, 0);
