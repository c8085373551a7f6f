-- What the worktrees of a team need to know of each other: who changes which
-- files, who has asked for some of them, and what is on its way into a branch.

CREATE TABLE file_leases (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  holder  TEXT NOT NULL,               -- session key
  name    TEXT NOT NULL,
  glob    TEXT NOT NULL,
  why     TEXT NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  UNIQUE (holder, glob)
) STRICT;

-- The newest list of each member replaces the one before.
CREATE TABLE touched_files (
  session TEXT NOT NULL,
  path    TEXT NOT NULL,
  dirty   INTEGER NOT NULL CHECK (dirty IN (0, 1)), -- not committed
  PRIMARY KEY (session, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_touched_files_path ON touched_files(path);

-- What has been told, so that nobody is told twice. a < b.
CREATE TABLE overlaps (
  a    TEXT NOT NULL,
  b    TEXT NOT NULL,
  path TEXT NOT NULL,
  at   INTEGER NOT NULL,
  PRIMARY KEY (a, b, path),
  CHECK (a < b)
) STRICT, WITHOUT ROWID;

CREATE TABLE merges (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  member   TEXT NOT NULL,
  session  TEXT NOT NULL,
  branch   TEXT NOT NULL,
  tip      TEXT NOT NULL,              -- the commit that was asked for
  target   TEXT NOT NULL,              -- short name of the branch it goes into
  strategy TEXT NOT NULL CHECK (strategy IN ('merge', 'rebase', 'squash')),
  gates    TEXT NOT NULL CHECK (json_type(gates) = 'array'),
  options  TEXT NOT NULL CHECK (json_type(options) = 'object'),
  state    TEXT NOT NULL CHECK (state IN
           ('queued', 'gating', 'landing', 'landed', 'contained', 'conflict', 'red', 'failed', 'canceled')),
  old      TEXT NOT NULL DEFAULT '',   -- landing: where the target was
  new      TEXT NOT NULL DEFAULT '',   -- landing: where it goes
  files    TEXT NOT NULL DEFAULT '[]' CHECK (json_type(files) = 'array'),
  log      TEXT NOT NULL DEFAULT '',
  why      TEXT NOT NULL DEFAULT '',
  task     TEXT NOT NULL DEFAULT '',
  askedBy  TEXT NOT NULL,
  askedAt  INTEGER NOT NULL,
  endedAt  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX idx_merges_open ON merges(branch, target) WHERE state IN ('queued', 'gating', 'landing');

-- What is set for the team as a whole, by name, as JSON.
CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL CHECK (json_valid(value))
) STRICT, WITHOUT ROWID;
