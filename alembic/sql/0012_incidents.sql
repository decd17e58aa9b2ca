-- Alerts can be acknowledged and muted, and are told again while they stay open.
ALTER TABLE wakebell.alerts
    ADD COLUMN acknowledged_at timestamptz,
    ADD COLUMN muted_until timestamptz,
    ADD COLUMN told_at timestamptz;
