-- What a waiting agent waits for, and when a limited one goes on (Unix milliseconds).
ALTER TABLE members ADD COLUMN activityFor TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN activityUntil INTEGER NOT NULL DEFAULT 0;
