-- +goose Up

-- The factory's generation that the last change of a resource was planned with. Who has the resources of a
-- generation misses those with this base or a later one.
ALTER TABLE resources ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
CREATE INDEX resources_by_base ON resources (factory_uid, base);
