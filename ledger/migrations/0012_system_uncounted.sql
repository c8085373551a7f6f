-- What the team itself says is no conversation: it counts against no cap.
DROP INDEX idx_messages_cap;
CREATE INDEX idx_messages_cap ON messages(run)
  WHERE kind IN ('message', 'broadcast', 'task_request', 'task_response', 'info', 'error') AND fromAgent <> 'system';
