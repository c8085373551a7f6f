-- Who gave the command that a task has to pass. Empty: nobody that is known to be
-- allowed to, and only a built-in worker runs it then.
ALTER TABLE tasks ADD COLUMN verifyBy TEXT NOT NULL DEFAULT '';
UPDATE tasks SET verifyBy = 'team-lead' WHERE verify <> '' AND 'team-lead' = coalesce(
  (SELECT e.who FROM events e WHERE e.id = tasks.id AND e.what IN ('task.updated', 'task.assigned')
    AND json_valid(e.after) AND json_extract(e.after, '$.verify') IS NOT NULL ORDER BY e.seq DESC LIMIT 1),
  (SELECT e.who FROM events e WHERE e.id = tasks.id AND e.what = 'task.created' ORDER BY e.seq LIMIT 1));

-- Each time that a task is verified. It is open from the moment when its owner has said
-- that the work is done until it is known what came of the command.
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

-- The open verification of a task that its owner has handed in; the task stays
-- in_progress until it is known.
ALTER TABLE tasks ADD COLUMN verification INTEGER REFERENCES verifications(id);
-- A task that is taken back, given up or deleted meanwhile waits for nothing any more.
-- What runs for it is ended by the supervisor, which knows it by its generation.
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
