-- +goose Up

-- Where the factory's definition came from at the attempt. Attempts before this column are taken to be of
-- where it comes from now.
ALTER TABLE syncs ADD COLUMN source TEXT NOT NULL DEFAULT '{}';
UPDATE syncs SET source = (SELECT source FROM factories WHERE uid = syncs.factory_uid);
