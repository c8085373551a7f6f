-- What an approval lets happen and takes longer than its transaction: it stays until
-- whoever does it says what came of it.
CREATE TABLE intents (
  approval INTEGER PRIMARY KEY REFERENCES approvals(id),
  what     TEXT NOT NULL CHECK (json_valid(what)),
  outcome  TEXT CHECK (outcome IS NULL OR json_valid(outcome)) -- NULL: it is to be done
) STRICT;
CREATE INDEX idx_intents_open ON intents(approval) WHERE outcome IS NULL;
-- It ends once.
CREATE TRIGGER intents_ended BEFORE UPDATE ON intents
WHEN OLD.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an intent ends once'); END;
