-- The newest idle notice of a member is found by its sender: the next one replaces it.
CREATE INDEX idx_messages_idle ON messages(fromAgent, seq) WHERE kind = 'idle_notification';
