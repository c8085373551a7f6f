-- The numbers of the board. Counting 100,000 tasks takes tens of milliseconds, and
-- whoever shows or waits for tasks needs the numbers after every change. ready are the
-- pending tasks that wait for no other task and not for their time, assigned or not.
CREATE TABLE task_counts (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  pending     INTEGER NOT NULL DEFAULT 0,
  ready       INTEGER NOT NULL DEFAULT 0,
  claimed     INTEGER NOT NULL DEFAULT 0,
  in_progress INTEGER NOT NULL DEFAULT 0,
  completed   INTEGER NOT NULL DEFAULT 0,
  failed      INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO task_counts SELECT 1,
  count(*) FILTER (WHERE status = 'pending'),
  count(*) FILTER (WHERE status = 'pending' AND unmet = 0 AND notBefore = 0),
  count(*) FILTER (WHERE status = 'claimed'),
  count(*) FILTER (WHERE status = 'in_progress'),
  count(*) FILTER (WHERE status = 'completed'),
  count(*) FILTER (WHERE status = 'failed')
FROM tasks;

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

-- What a worker may take: a board may have any number of ready tasks without a command.
CREATE INDEX idx_tasks_command ON tasks(priority DESC, seq)
  WHERE status = 'pending' AND unmet = 0 AND notBefore = 0 AND owner IS NULL
    AND trim(coalesce(json_extract(metadata, '$.run'), ''), char(9, 10, 13, 32)) <> '';
-- What is assigned to a member and not begun.
CREATE INDEX idx_tasks_given ON tasks(owner, seq) WHERE status = 'pending' AND owner IS NOT NULL;
