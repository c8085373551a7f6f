-- By which screen a person did something, empty for a command or no person: "page", "screen".
ALTER TABLE events ADD COLUMN via TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN answeredVia TEXT NOT NULL DEFAULT '';
