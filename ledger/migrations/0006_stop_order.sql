-- How a member that is wanted stopped is to be stopped, as JSON: the supervisor
-- that was told may not live to do it.
ALTER TABLE members ADD COLUMN stopOrder TEXT NOT NULL DEFAULT '';
