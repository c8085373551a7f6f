-- The error that ended the last turn of an idle agent, in its program's words, and that
-- the lead was told of it in this idle period (see idleTold).
ALTER TABLE members ADD COLUMN turnError TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN failedTold INTEGER NOT NULL DEFAULT 0 CHECK (failedTold IN (0, 1));
