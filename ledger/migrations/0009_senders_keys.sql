-- An idempotency key is its sender's, and a name that is used again is another sender:
-- the new one's message must not be taken for the old one's.
DROP INDEX idx_messages_idem;
CREATE UNIQUE INDEX idx_messages_idem ON messages(run, fromAgent, idemKey, fromSession) WHERE idemKey IS NOT NULL;

-- The version of the scratchpad goes up one by one, whoever writes.
CREATE TRIGGER runs_scratchpad_version BEFORE UPDATE OF scratchpadVersion ON runs
WHEN NEW.scratchpadVersion <> OLD.scratchpadVersion + 1
BEGIN SELECT RAISE(ABORT, 'the scratchpad changes by merge only'); END;
