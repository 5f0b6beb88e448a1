-- +goose Up

-- Metadata know when their run ended, so that the runs that have ended with a value are in the order of the list.
ALTER TABLE run_metadata ADD COLUMN ended_at BIGINT; -- updated_at of a run that has ended
UPDATE run_metadata SET ended_at = r.updated_at FROM runs r WHERE r.id = run_metadata.run_id AND r.finished_at IS NOT NULL;
ALTER TABLE run_metadata DROP CONSTRAINT run_metadata_pkey;
DROP INDEX run_metadata_by_run;
ALTER TABLE run_metadata ADD PRIMARY KEY (run_id, key);
CREATE INDEX run_metadata_by_value ON run_metadata (key, value, ended_at, run_id);

-- Runs that were at work at some moment are found among those of each class of duration that were made not
-- much before it. A list in the order of the last update needs them to leave out what was made later.
CREATE INDEX ended_by_duration ON runs ((CASE WHEN updated_at - created_at < 16000000 THEN 0 WHEN updated_at - created_at < 64000000 THEN 1
  WHEN updated_at - created_at < 256000000 THEN 2 WHEN updated_at - created_at < 1024000000 THEN 3
  WHEN updated_at - created_at < 4096000000 THEN 4 WHEN updated_at - created_at < 16384000000 THEN 5
  WHEN updated_at - created_at < 65536000000 THEN 6 WHEN updated_at - created_at < 262144000000 THEN 7
  WHEN updated_at - created_at < 1048576000000 THEN 8 WHEN updated_at - created_at < 4194304000000 THEN 9 ELSE 10 END), created_at, updated_at, id) WHERE finished_at IS NOT NULL;

-- The descendants of a run have its root.
CREATE INDEX runs_by_root ON runs (root_run_id, updated_at, id) WHERE parent_run_id <> '';
