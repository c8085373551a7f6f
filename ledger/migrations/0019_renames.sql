-- Renamed members. A row is written before anything changes, so that an interrupted rename
-- can be completed; applied means that the ledger has the new name while files may still have
-- the old one. Both names are reserved until the row is done. Done rows stay: they lead from
-- a former name to its member.
CREATE TABLE renames (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,               -- of the member that was named
  was     TEXT NOT NULL COLLATE NOCASE,
  name    TEXT NOT NULL COLLATE NOCASE,
  state   TEXT NOT NULL CHECK (state IN ('begun', 'applied', 'done')),
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_renames_was     ON renames(was, id);
CREATE INDEX idx_renames_session ON renames(session);
CREATE INDEX idx_renames_open    ON renames(id) WHERE state <> 'done';
