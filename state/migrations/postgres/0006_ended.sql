-- +goose Up

-- A run moves several times before it ends, and each time every index that has it is written. The indexes on
-- what lists select by therefore have a run only once it has ended; live runs are found by their last update.
DROP INDEX runs_by_update;
DROP INDEX runs_by_state;
DROP INDEX runs_by_source;
DROP INDEX runs_by_factory;
DROP INDEX runs_by_creator;
DROP INDEX runs_by_automation;
DROP INDEX runs_by_webhook;
DROP INDEX runs_by_model;
DROP INDEX runs_by_environment;
DROP INDEX runs_by_skill;
DROP INDEX runs_by_worker;
CREATE INDEX runs_live ON runs (updated_at, id, state) WHERE finished_at IS NULL;
CREATE INDEX runs_ended ON runs (updated_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_by_state ON runs (state, updated_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_by_source ON runs (source, updated_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_by_factory ON runs (factory_uid, updated_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_by_creator ON runs (creator_uid, updated_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_by_automation ON runs (automation_uid, updated_at, id) WHERE finished_at IS NOT NULL AND automation_uid <> '';
CREATE INDEX ended_by_webhook ON runs (webhook_uid, updated_at, id) WHERE finished_at IS NOT NULL AND webhook_uid <> '';
CREATE INDEX ended_by_model ON runs (model_id, updated_at, id) WHERE finished_at IS NOT NULL AND model_id <> '';
CREATE INDEX ended_by_environment ON runs (environment_id, updated_at, id) WHERE finished_at IS NOT NULL AND environment_id <> '';
CREATE INDEX ended_by_skill ON runs (skill_spec, updated_at, id) WHERE finished_at IS NOT NULL AND skill_spec <> '';
CREATE INDEX ended_by_worker ON runs (worker, updated_at, id) WHERE finished_at IS NOT NULL AND worker <> '';
