-- What waits for a session is found without the deliveries that have reached it. The
-- state is in the index so that they can be counted in it.
CREATE INDEX idx_deliveries_open ON deliveries(session, rank, seq, state)
  WHERE state IN ('posted', 'mailed', 'held', 'injected');
