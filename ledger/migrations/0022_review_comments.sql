-- Comments on the changes of a member, in rounds. A draft is in the round that its author
-- sends next; the rows of a round have the number, the message and the task that it was
-- sent with. Lines are counted from 1; 0 is the whole file. quote has those lines and around
-- some before and after them, by which a comment is found again when the file has changed.
CREATE TABLE review_comments (
  session    TEXT NOT NULL,            -- of the member whose changes they are about
  round      INTEGER NOT NULL,
  number     INTEGER NOT NULL,         -- in the round, from 1
  author     TEXT NOT NULL,
  path       TEXT NOT NULL,
  first      INTEGER NOT NULL,
  last       INTEGER NOT NULL,
  old        INTEGER NOT NULL CHECK (old IN (0, 1)), -- the lines are those of the base
  quote      TEXT NOT NULL DEFAULT '',
  above      TEXT NOT NULL DEFAULT '',
  below      TEXT NOT NULL DEFAULT '',
  text       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('draft', 'open', 'asked', 'handled')),
  answer     TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL,
  answeredAt INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, round, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_review_drafts ON review_comments(session, author) WHERE state = 'draft';

CREATE TABLE review_rounds (
  session TEXT NOT NULL,
  round   INTEGER NOT NULL,
  author  TEXT NOT NULL,
  message TEXT NOT NULL DEFAULT '',
  task    TEXT NOT NULL DEFAULT '',
  tip     TEXT NOT NULL DEFAULT '',    -- commit with what the author saw
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, round)
) STRICT, WITHOUT ROWID;

-- Files that a person has looked through, until they change.
CREATE TABLE reviewed_files (
  session TEXT NOT NULL,
  author  TEXT NOT NULL,
  path    TEXT NOT NULL,
  hash    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, author, path)
) STRICT, WITHOUT ROWID;
