-- A delivery may be unknown: handed over, and for longer than that takes nothing has told
-- what became of it. SQLite changes no CHECK: the table is made anew.
CREATE TABLE deliveries_new (
  message   TEXT NOT NULL REFERENCES messages(id),
  recipient TEXT NOT NULL COLLATE NOCASE,
  session   TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  rank      INTEGER NOT NULL,          -- 0 shutdown, 1 from the lead, 2 from peers
  state     TEXT NOT NULL CHECK (state IN
            ('posted', 'mailed', 'held', 'injected', 'unknown', 'accepted', 'read', 'answered', 'dropped')),
  reason    TEXT NOT NULL DEFAULT '',
  evidence  TEXT NOT NULL DEFAULT '',
  at        INTEGER NOT NULL,
  PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
INSERT INTO deliveries_new SELECT message, recipient, session, seq, rank, state, reason, evidence, at FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_new RENAME TO deliveries;
CREATE INDEX idx_deliveries_posted  ON deliveries(rank, seq) WHERE state = 'posted';
CREATE INDEX idx_deliveries_session ON deliveries(session, seq);
CREATE INDEX idx_deliveries_open ON deliveries(session, rank, seq, state)
  WHERE state IN ('posted', 'mailed', 'held', 'injected', 'unknown');
