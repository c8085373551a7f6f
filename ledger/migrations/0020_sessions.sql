-- Conversations of the built-in agent, the queue of their turns, and what their agents are
-- capable of. A session is the conversation of one member, or a child of another session.

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

-- The transcript. It only grows; the entries of a closed session may be archived.
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

-- What waits for the session's next turn, and what has: entry is where it went.
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

-- Results of child sessions, each told once to its parent. job is the turn that sees it.
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
