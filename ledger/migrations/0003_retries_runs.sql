-- Failed tasks that come back by themselves after a while, runs inside runs, and
-- the one way to take old history out of the append-only tables.

ALTER TABLE tasks ADD COLUMN maxRetries   INTEGER NOT NULL DEFAULT 0 CHECK (maxRetries >= 0);
ALTER TABLE tasks ADD COLUMN retryBackoff INTEGER NOT NULL DEFAULT 0 CHECK (retryBackoff >= 0); -- ms before the first retry; doubles
ALTER TABLE tasks ADD COLUMN retries      INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0);      -- made by itself so far
ALTER TABLE tasks ADD COLUMN notBefore    INTEGER NOT NULL DEFAULT 0 CHECK (notBefore >= 0);    -- 0: now

-- A task whose time has not come stands in neither of the claim's indexes, so
-- nobody walks over it; whoever claims takes those whose time has come out of
-- the third first.
DROP INDEX idx_tasks_ready;
DROP INDEX idx_tasks_assigned;
CREATE INDEX idx_tasks_ready    ON tasks(priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL;
CREATE INDEX idx_tasks_assigned ON tasks(owner, priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NOT NULL;
CREATE INDEX idx_tasks_later    ON tasks(notBefore) WHERE notBefore > 0;

ALTER TABLE runs ADD COLUMN name   TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN parent INTEGER REFERENCES runs(id);
ALTER TABLE runs ADD COLUMN depth  INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 8);
-- The open runs are one chain, a run and its sub-runs; the deepest is the current one.
CREATE UNIQUE INDEX idx_runs_open ON runs(depth) WHERE endedAt IS NULL;

-- Rows are append-only but for those older than the mark that prune sets and
-- takes away again in its own transaction.
DROP TRIGGER events_no_delete;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM counters WHERE name = 'pruning' AND value > OLD.at)
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
DROP TRIGGER messages_no_delete;
CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM counters WHERE name = 'pruning' AND value > OLD.at)
BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;
