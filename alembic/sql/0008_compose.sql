-- What templates tell of an item besides its title and link.

ALTER TABLE wakebell.items
    ADD COLUMN text text,               -- both kept only for items that a template tells; NULL: no template, or no such
    ADD COLUMN fields jsonb;
