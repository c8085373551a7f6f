-- The board shows the newest of what has ended and the oldest of what is open, without
-- reading the rest: an entry of this index lies where its task would be shown.
DROP INDEX idx_tasks_status;
CREATE INDEX idx_tasks_status ON tasks(status, completedAt, seq);
