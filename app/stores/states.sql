-- name: judge
-- What a round says of its source, which the caller has locked. A first round begins everything anew. A failed round
-- says nothing. `state_at` moves with each: what is judged to be over, is so by a later round.
UPDATE wakebell.sources AS s SET
    key_rule = coalesce(given.rule, s.key_rule),
    oldest_at = CASE WHEN given.priming THEN given.oldest_at ELSE s.oldest_at END,
    last_news_at = CASE WHEN given.news THEN now() ELSE s.last_news_at END,
    empty_rounds = CASE WHEN given.empty THEN s.empty_rounds + 1 ELSE 0 END,
    state = CASE
        WHEN given.unstable OR (given.unchanged AND s.state = 'unstable') THEN 'unstable'
        WHEN given.empty AND s.empty_rounds + 1 >= given.zero_alert_after AND given.zero_alert_after > 0 THEN 'blind'
        WHEN NOT given.news
            AND coalesce(s.last_news_at, s.primed_at) < now() - make_interval(secs => given.expect_seconds)
        THEN 'silent'
        ELSE 'ok'
    END,
    state_at = now()
FROM (
    SELECT
        CAST(:unchanged AS boolean) AS unchanged,
        CAST(:priming AS boolean) AS priming,
        CAST(:rule AS text) AS rule,
        CAST(:news AS boolean) AS news,
        CAST(:empty AS boolean) AS empty,
        CAST(:unstable AS boolean) AS unstable,
        CAST(:oldest_at AS timestamptz) AS oldest_at,
        CAST(:zero_alert_after AS integer) AS zero_alert_after,
        CAST(:expect_seconds AS double precision) AS expect_seconds
) AS given
WHERE s.name = :name
RETURNING s.state;
