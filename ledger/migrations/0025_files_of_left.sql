-- What members that have left had changed, asked for and were told of. Their sessions never come
-- back, and every look at a worktree read past these rows.
DELETE FROM file_leases WHERE holder NOT IN (SELECT sessionKey FROM members WHERE removedAt IS NULL);
DELETE FROM touched_files WHERE session NOT IN (SELECT sessionKey FROM members WHERE removedAt IS NULL);
DELETE FROM overlaps WHERE a NOT IN (SELECT sessionKey FROM members WHERE removedAt IS NULL)
  OR b NOT IN (SELECT sessionKey FROM members WHERE removedAt IS NULL);
