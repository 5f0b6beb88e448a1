-- +goose Up

-- Of runs that wait behind many others, the row is at rest like that of one that has ended. Both are settled: the
-- indexes that lists select by have them. The others move, and are few: a list looks at each of them.
ALTER TABLE runs ADD COLUMN in_backlog INTEGER NOT NULL DEFAULT 0 CHECK (in_backlog = 0 OR state = 'QUEUED');
DROP INDEX runs_live;
DROP INDEX runs_ended;
DROP INDEX ended_by_duration;
DROP INDEX runs_by_title;
DROP INDEX runs_by_name;
DROP INDEX ended_by_state;
DROP INDEX ended_by_source;
DROP INDEX ended_by_factory;
DROP INDEX ended_by_creator;
DROP INDEX ended_by_automation;
DROP INDEX ended_by_webhook;
DROP INDEX ended_by_model;
DROP INDEX ended_by_environment;
DROP INDEX ended_by_skill;
DROP INDEX ended_by_worker;
CREATE INDEX runs_moving ON runs (updated_at, id, state) WHERE finished_at IS NULL AND in_backlog = 0;
CREATE INDEX moving_by_title ON runs (title, id) WHERE finished_at IS NULL AND in_backlog = 0;
CREATE INDEX moving_by_name ON runs (config_name, updated_at, id) WHERE finished_at IS NULL AND in_backlog = 0;
CREATE INDEX runs_settled ON runs (updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_state ON runs (state, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_source ON runs (source, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_factory ON runs (factory_uid, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_creator ON runs (creator_uid, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_automation ON runs (automation_uid, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND automation_uid <> '';
CREATE INDEX settled_by_webhook ON runs (webhook_uid, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND webhook_uid <> '';
CREATE INDEX settled_by_model ON runs (model_id, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND model_id <> '';
CREATE INDEX settled_by_environment ON runs (environment_id, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND environment_id <> '';
CREATE INDEX settled_by_skill ON runs (skill_spec, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND skill_spec <> '';
CREATE INDEX settled_by_worker ON runs (worker, updated_at, id) WHERE (finished_at IS NOT NULL OR in_backlog = 1) AND worker <> '';

-- Beside their keys these have what lists select by, so that what is not wanted is passed over without reading its
-- row. The columns that may be longest are not among them: PostgreSQL bounds what an index has of a row.
CREATE INDEX settled_by_title ON runs (title, id, state, source, factory_uid, creator_uid, automation_uid, webhook_uid, worker, model_id, config_name, created_at, updated_at) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_name ON runs (config_name, updated_at, id, state, source, factory_uid, creator_uid, automation_uid, webhook_uid, worker, model_id, created_at) WHERE (finished_at IS NOT NULL OR in_backlog = 1);
CREATE INDEX settled_by_duration ON runs ((CASE WHEN updated_at - created_at < 16000000 THEN 0 WHEN updated_at - created_at < 64000000 THEN 1
  WHEN updated_at - created_at < 256000000 THEN 2 WHEN updated_at - created_at < 1024000000 THEN 3
  WHEN updated_at - created_at < 4096000000 THEN 4 WHEN updated_at - created_at < 16384000000 THEN 5
  WHEN updated_at - created_at < 65536000000 THEN 6 WHEN updated_at - created_at < 262144000000 THEN 7
  WHEN updated_at - created_at < 1048576000000 THEN 8 WHEN updated_at - created_at < 4194304000000 THEN 9 ELSE 10 END), created_at, updated_at, id, state, source, factory_uid, creator_uid, automation_uid, webhook_uid, worker, model_id, config_name) WHERE (finished_at IS NOT NULL OR in_backlog = 1);

ALTER TABLE run_metadata RENAME COLUMN ended_at TO settled_at; -- updated_at of a run that is settled
