-- Who a caller is, and what waits for somebody's word.

-- SHA-256 of the secret of the newest generation, in hex; empty: none was given.
ALTER TABLE members ADD COLUMN tokenHash TEXT NOT NULL DEFAULT '';

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
  answeredAt INTEGER NOT NULL DEFAULT 0,
  CHECK ((state = 'pending') = (answeredAt = 0))
) STRICT;
CREATE UNIQUE INDEX idx_approvals_plan   ON approvals(session) WHERE kind = 'plan' AND state = 'pending';
CREATE UNIQUE INDEX idx_approvals_review ON approvals(task) WHERE kind = 'review' AND state = 'pending';
CREATE INDEX idx_approvals_pending       ON approvals(id) WHERE state = 'pending';
-- An answer is given once.
CREATE TRIGGER approvals_answered BEFORE UPDATE ON approvals
WHEN OLD.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'an approval is answered once'); END;

-- The pending review of a task that its owner has completed; the task stays
-- in_progress until it is answered.
ALTER TABLE tasks ADD COLUMN review INTEGER REFERENCES approvals(id);
-- A task that is taken back or deleted meanwhile waits for no review any more.
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
