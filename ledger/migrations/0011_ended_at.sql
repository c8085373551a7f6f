-- When the newest generation of a member has ended; 0 while it lives, or never did.
ALTER TABLE members ADD COLUMN endedAt INTEGER NOT NULL DEFAULT 0;
