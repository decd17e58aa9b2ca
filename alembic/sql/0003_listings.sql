-- One index for every combination of filters: the pairs or triples that exist are found by one probe each, and each gives
-- at most a page of ids. An index for each filter would cost a claim twice as much.
CREATE INDEX jobs_listed_idx ON wakebell.jobs (queue, type, status, id);
CREATE INDEX messages_listed_idx ON wakebell.messages (recipient, channel, status, id);
