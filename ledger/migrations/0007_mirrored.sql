-- What stands here and in the team of another program, and where the carrying of it
-- stood: a bridge that is killed goes on from here. There is the name on the other
-- side, here ours; ours says that it began here, and data is what both sides last had.
CREATE TABLE mirrored (
  bridge TEXT NOT NULL,
  kind   TEXT NOT NULL CHECK (kind IN ('member', 'task', 'mail', 'draft', 'stop')),
  there  TEXT NOT NULL,
  here   TEXT NOT NULL,
  ours   INTEGER NOT NULL CHECK (ours IN (0, 1)),
  data   TEXT CHECK (data IS NULL OR json_valid(data)),
  at     INTEGER NOT NULL,
  PRIMARY KEY (bridge, kind, there)
) STRICT, WITHOUT ROWID;
