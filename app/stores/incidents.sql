-- name: list_alerts
-- A page of alerts, the newest first, with how long each is muted.
SELECT id, key, kind, subject, reason, failures, opened_at, failed_at, resolved_at, told_at, acknowledged_at, last_job,
       CASE WHEN resolved_at IS NULL THEN wakebell.muted_until(key) END AS muted_until
FROM wakebell.alerts
WHERE (CAST(:before AS bigint) IS NULL OR id < CAST(:before AS bigint))
  AND (CAST(:kind AS text) IS NULL OR kind = CAST(:kind AS text))
  AND (CAST(:open AS boolean) IS NULL OR (resolved_at IS NULL) = CAST(:open AS boolean))
ORDER BY id DESC
LIMIT :limit;

-- name: find
-- The alert with this id; or the open one with this key.
SELECT id, key, kind, subject, reason, failures, opened_at, failed_at, resolved_at, told_at, acknowledged_at, last_job,
       CASE WHEN resolved_at IS NULL THEN wakebell.muted_until(key) END AS muted_until
FROM wakebell.alerts
WHERE id = CAST(:id AS bigint) OR (key = CAST(:key AS text) AND resolved_at IS NULL);

-- name: acknowledge
-- Somebody has taken it on: it is not told again while it is open. The first to do so counts.
UPDATE wakebell.alerts SET acknowledged_at = coalesce(acknowledged_at, now())
WHERE id = :id AND resolved_at IS NULL
RETURNING id;

-- name: mute
-- Tell nothing of what fits this pattern until then, or for so long from now; again: the later word counts. No row: that
-- is over already.
INSERT INTO wakebell.mutes AS mute (pattern, until)
SELECT CAST(:pattern AS text), asked.until
FROM (
    SELECT coalesce(CAST(:until AS timestamptz), now() + make_interval(secs => :seconds)) AS until
) AS asked
WHERE asked.until > now()
ON CONFLICT (pattern) DO UPDATE SET until = excluded.until, muted_at = now()
RETURNING pattern, until;

-- name: unmute
DELETE FROM wakebell.mutes WHERE pattern = :pattern RETURNING until > now() AS was_muted;

-- name: list_mutes
SELECT pattern, until, muted_at FROM wakebell.mutes WHERE until > now() ORDER BY pattern LIMIT 1000;

-- name: forget_mutes
-- Those that are over: whoever mutes clears them away.
DELETE FROM wakebell.mutes WHERE until < now() - interval '1 day';
