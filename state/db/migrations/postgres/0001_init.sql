-- +goose Up
-- One statement to goose: the database reads the whole at once.
-- +goose StatementBegin

-- Everything that millwright remembers. Times are microseconds since the Unix epoch, UTC. Every index names
-- the query that needs it. CHECKs of the tables that deliveries write are chains of OR: for IN with a list,
-- SQLite makes a temporary table in each statement.

-- One row a fact about the state itself.
CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);

-- The generation of what ingress serves.
CREATE TABLE routing (
  id         BIGINT PRIMARY KEY CHECK (id = 1),
  generation BIGINT NOT NULL
);
INSERT INTO routing (id, generation) VALUES (1, 1);

-- The servers of this state, and the generation that each has loaded.
CREATE TABLE replicas (
  uid         TEXT PRIMARY KEY,
  generation  BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
);

-- What one server at a time may do.
CREATE TABLE locks (
  name        TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  holder      TEXT NOT NULL,
  lease_until BIGINT NOT NULL
);

CREATE TABLE factories (
  uid                TEXT PRIMARY KEY,
  name               TEXT NOT NULL UNIQUE,
  uid_key            BYTEA NOT NULL,
  identity           BYTEA NOT NULL,
  recipient          TEXT NOT NULL,
  generation         BIGINT NOT NULL,
  source             TEXT NOT NULL,
  spec               TEXT NOT NULL DEFAULT 'null',
  detached           BIGINT NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),
  suspended          BIGINT NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1)),
  sync_state         TEXT NOT NULL DEFAULT 'pending' CHECK (
    sync_state IN ('pending', 'applied', 'refused', 'failed')
  ),
  sync_since         BIGINT NOT NULL,
  attempted_revision TEXT NOT NULL DEFAULT '{}',
  applied_revision   TEXT NOT NULL DEFAULT '{}',
  last_attempted_at  BIGINT,
  last_applied_at    BIGINT,
  problems           TEXT NOT NULL DEFAULT '[]',
  message            TEXT NOT NULL DEFAULT '',
  pin                TEXT NOT NULL DEFAULT 'null',
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL
);

-- One row an attempt to apply. source is where the definition came from at that time, changes what was applied.
CREATE TABLE syncs (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  revision    TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (
    outcome IN ('applied', 'refused', 'unchanged', 'failed', 'suspended')
  ),
  counts      TEXT NOT NULL,
  problems    TEXT NOT NULL,
  message     TEXT NOT NULL,
  source      TEXT NOT NULL DEFAULT '{}',
  changes     TEXT NOT NULL DEFAULT '[]'
);
-- Lists a factory's attempts, the newest first.
CREATE INDEX syncs_by_factory ON syncs (factory_uid, id);

-- What the server owes forges about revisions: the status of a commit of a watched branch (number is 0), or
-- status and comment of a pull request. next_at is when a waiting check is due, and when the lease of the server
-- ends that publishes it. revision counts the changes of what it says, attempts the servers that took it.
CREATE TABLE checks (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  subject     TEXT NOT NULL,
  number      BIGINT NOT NULL,
  url         TEXT NOT NULL,
  commit_id   TEXT NOT NULL,
  result      TEXT NOT NULL CHECK (result IN ('pending', 'success', 'failure', 'error')),
  description TEXT NOT NULL,
  public      TEXT NOT NULL,
  comment     TEXT NOT NULL DEFAULT '',
  attempt     BIGINT NOT NULL DEFAULT 0,
  basis       TEXT NOT NULL DEFAULT '',
  is_open     BIGINT NOT NULL DEFAULT 0 CHECK (is_open IN (0, 1)),
  pull        TEXT NOT NULL DEFAULT '{}',
  comment_id  BIGINT NOT NULL DEFAULT 0,
  comments    BIGINT NOT NULL DEFAULT 0,
  account     TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL DEFAULT 'waiting' CHECK (
    state IN ('waiting', 'doing', 'done', 'failed', 'dropped')
  ),
  revision    BIGINT NOT NULL DEFAULT 1,
  attempts    BIGINT NOT NULL DEFAULT 0,
  next_at     BIGINT NOT NULL,
  reason      TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  PRIMARY KEY (factory_uid, subject)
);
-- Finds what is to be published.
CREATE INDEX checks_by_state ON checks (state, next_at);

-- Secrets belong to the team, as API keys do, and then factory_uid is empty; or to the factory whose definition
-- holds them, and then name is factory_uid/name. A version without a sealed value is pending. revision and digest
-- are those of the definition and of the file that brought it.
CREATE TABLE secrets (
  name        TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  version     BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  CHECK (factory_uid = '' OR substr(name, 1, length(factory_uid) + 1) = factory_uid || '/')
);

CREATE TABLE secret_versions (
  name          TEXT NOT NULL REFERENCES secrets (name) ON DELETE CASCADE,
  factory_uid   TEXT NOT NULL DEFAULT '',
  version       BIGINT NOT NULL,
  sealed        BYTEA,
  url_safe      BIGINT NOT NULL CHECK (url_safe IN (0, 1)),
  visible_ascii BIGINT NOT NULL CHECK (visible_ascii IN (0, 1)),
  revision      TEXT NOT NULL DEFAULT '',
  digest        TEXT NOT NULL DEFAULT '',
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (name, version)
);

-- A UID is made of first_name and ordinal: the name that the webhook had first, and how many had that one
-- first before. A deleted webhook whose name returns before restorable_until is the same webhook again.
CREATE TABLE webhooks (
  id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid              TEXT NOT NULL UNIQUE,
  factory_uid      TEXT NOT NULL REFERENCES factories (uid),
  name             TEXT NOT NULL,
  first_name       TEXT NOT NULL,
  ordinal          BIGINT NOT NULL,
  spec             TEXT NOT NULL,
  secret_name      TEXT,
  secret_version   BIGINT,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL,
  deleted_at       BIGINT,
  restorable_until BIGINT,
  UNIQUE (factory_uid, first_name, ordinal),
  CHECK (deleted_at IS NOT NULL OR restorable_until IS NULL),
  CHECK ((deleted_at IS NULL) = (secret_version IS NOT NULL)),
  FOREIGN KEY (secret_name, secret_version) REFERENCES secret_versions (name, version)
);
-- Forbids two webhooks of one name that are not deleted, and finds the one.
CREATE UNIQUE INDEX webhooks_live ON webhooks (factory_uid, name)
  WHERE deleted_at IS NULL;

-- What a provider sent, unsigned, as the secret of a webhook that waits for it: the last, until its owner
-- decides.
CREATE TABLE offered_secrets (
  webhook_uid TEXT PRIMARY KEY REFERENCES webhooks (uid),
  factory_uid TEXT NOT NULL,
  sealed      BYTEA NOT NULL,
  sender      TEXT NOT NULL,
  received_at BIGINT NOT NULL,
  count       BIGINT NOT NULL
);

-- Automations, agents, runners, environments, skills and notifications. base is the factory's generation that the last change was
-- planned with.
CREATE TABLE resources (
  uid         TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  kind        TEXT NOT NULL CHECK (
    kind IN ('automation', 'agent', 'runner', 'environment', 'skill', 'notification')
  ),
  name        TEXT NOT NULL,
  spec        TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  deleted_at  BIGINT,
  base        BIGINT NOT NULL DEFAULT 0
);
-- Forbids two resources of one kind and name that are not deleted, and lists those of a factory.
CREATE UNIQUE INDEX resources_live ON resources (factory_uid, kind, name)
  WHERE deleted_at IS NULL;
-- Finds what changed since a generation that is held in memory.
CREATE INDEX resources_by_base ON resources (factory_uid, base);

-- When a schedule of an automation last fired, or was first seen.
CREATE TABLE schedules (
  automation_uid TEXT NOT NULL REFERENCES resources (uid) ON DELETE CASCADE,
  schedule       TEXT NOT NULL,
  factory_uid    TEXT NOT NULL,
  last_at        BIGINT NOT NULL,
  PRIMARY KEY (automation_uid, schedule)
);

-- Revisions of the definitions that the server itself holds. tree names the content of all files of one.
CREATE TABLE file_revisions (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  number      BIGINT NOT NULL CHECK (number > 0),
  tree        TEXT NOT NULL,
  author      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  files       BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (factory_uid, number)
);

-- Their files. A row is part of the revisions from since up to, not including, until; of the newest when
-- until is NULL.
CREATE TABLE revision_files (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  path        TEXT NOT NULL,
  since       BIGINT NOT NULL,
  until       BIGINT CHECK (until > since),
  size        BIGINT NOT NULL,
  content     BYTEA NOT NULL,
  PRIMARY KEY (factory_uid, path, since)
);
-- Forbids two contents of one path, and lists the files of the newest revision.
CREATE UNIQUE INDEX revision_files_newest ON revision_files (factory_uid, path)
  WHERE until IS NULL;

CREATE TABLE api_keys (
  uid         TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  name        TEXT NOT NULL,
  role        TEXT NOT NULL CHECK (role IN ('planner', 'viewer', 'runner', 'admin', 'worker')),
  -- person: somebody who signs in at an issuer. No secret is good for it; hash is of issuer and subject.
  kind        TEXT NOT NULL DEFAULT 'key' CHECK (kind IN ('key', 'person')),
  -- JSON list of the UIDs of the factories that the key is limited to; empty: it is not limited.
  factories   TEXT NOT NULL DEFAULT '' CHECK (factories = '' OR factories LIKE '[%]'),
  hash        BYTEA NOT NULL UNIQUE,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT,
  revoked_at  BIGINT
);

-- Signed-in browsers. A session lives no longer than its key.
CREATE TABLE sessions (
  hash        BYTEA PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  key_uid     TEXT NOT NULL REFERENCES api_keys (uid),
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL
);

-- Which identities a webhook has accepted. Narrow, because its keys are random and every delivery writes
-- it.
CREATE TABLE identities (
  webhook_id   BIGINT NOT NULL,
  hash         BYTEA NOT NULL,
  delivery_uid TEXT NOT NULL,
  PRIMARY KEY (webhook_id, hash)
);

-- The delivery log, newest last in the order of uid. A row with count above 1 stands for several rejected
-- requests. started counts the runs of its own. status is the answer's, and 0 for a replay. headers are a few
-- of the request, shortened, as lines "Name: value".
CREATE TABLE deliveries (
  webhook_id      BIGINT NOT NULL REFERENCES webhooks (id),
  uid             TEXT COLLATE "C" NOT NULL,
  factory_uid     TEXT NOT NULL,
  outcome         TEXT NOT NULL CHECK (
    outcome = 'accepted'
    OR outcome = 'duplicate'
    OR outcome = 'rejected_auth'
    OR outcome = 'rejected_invalid_json'
    OR outcome = 'rejected_too_large'
    OR outcome = 'handshake'
  ),
  reason          TEXT NOT NULL DEFAULT '',
  size_bytes      BIGINT,
  size_max        BIGINT,
  received_at     BIGINT NOT NULL,
  identity        TEXT NOT NULL DEFAULT '',
  identity_source TEXT NOT NULL DEFAULT '' CHECK (
    identity_source = ''
    OR identity_source = 'header'
    OR identity_source = 'provider'
    OR identity_source = 'service_header'
    OR identity_source = 'body_hash'
  ),
  sender          TEXT NOT NULL,
  duplicate_of    TEXT NOT NULL DEFAULT '',
  replay_of       TEXT NOT NULL DEFAULT '',
  event           TEXT NOT NULL DEFAULT '',
  generation      BIGINT NOT NULL DEFAULT 0,
  count           BIGINT NOT NULL DEFAULT 1,
  last_at         BIGINT,
  flow            TEXT NOT NULL DEFAULT '',
  started         BIGINT NOT NULL DEFAULT 0,
  status          BIGINT NOT NULL DEFAULT 0,
  headers         TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (webhook_id, uid)
);
-- Lists a webhook's deliveries of one outcome that is rare. Accepted ones are most, and cost nothing here.
CREATE INDEX deliveries_by_outcome ON deliveries (webhook_id, outcome, uid)
  WHERE outcome <> 'accepted';

-- How many requests to a webhook were refused in an hour, unlogged: by a budget, or while it was disabled. sender,
-- budget and last_at are those of the last one.
CREATE TABLE webhook_refusals (
  webhook_id  BIGINT NOT NULL REFERENCES webhooks (id),
  hour        BIGINT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('delivery_budget', 'failed_auth_budget', 'disabled')),
  factory_uid TEXT NOT NULL,
  count       BIGINT NOT NULL,
  sender      TEXT NOT NULL,
  budget      BIGINT NOT NULL,
  last_at     BIGINT NOT NULL,
  PRIMARY KEY (webhook_id, hour, kind)
);

-- size is that of the body as it came; a body of fewer bytes is compressed.
-- headers are those of deliveries that somebody listened to, as lines "Name: value"; of all others NULL.
CREATE TABLE payloads (
  delivery_uid TEXT PRIMARY KEY,
  factory_uid  TEXT NOT NULL,
  body         BYTEA NOT NULL,
  size         BIGINT NOT NULL,
  headers      BYTEA
);

-- Where the server was built with it, lz4 costs deliveries less.
DO $$ BEGIN
  ALTER TABLE payloads ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;

-- A run is live until it has ended, and indexed from then on: its row changes often while it is live, and
-- each change would write every index on what lists select by. A worker holds a run while claim_hash is
-- set. No worker may claim a queued run while waits_for is set: it waits until queued_at for the end of a
-- window or of a pause, for other runs of its automation or, until parked_until, for the budget whose scope
-- parked_by is. flow is what its automation's definition says of that. claims counts the claims of the execution.
-- While live is 1 the worker hands messages to the agent at once. questions counts those that wait for an answer.
-- traceparent is the trace that the run belongs to, in the form of W3C Trace Context. Columns that lists compare
-- come before those that may be long.
CREATE TABLE runs (
  id                  TEXT PRIMARY KEY,
  factory_uid         TEXT NOT NULL DEFAULT '',
  state               TEXT NOT NULL CHECK (
    state = 'QUEUED'
    OR state = 'CLAIMED'
    OR state = 'INPROGRESS'
    OR state = 'SUCCEEDED'
    OR state = 'FAILED'
    OR state = 'ERROR'
    OR state = 'BLOCKED'
    OR state = 'CANCELLED'
  ),
  source              TEXT NOT NULL,
  creator_type        TEXT NOT NULL CHECK (creator_type = 'user' OR creator_type = 'service_account'),
  creator_uid         TEXT NOT NULL,
  creator_name        TEXT NOT NULL,
  conversation_id     TEXT NOT NULL,
  parent_run_id       TEXT NOT NULL DEFAULT '',
  root_run_id         TEXT NOT NULL,
  automation_uid      TEXT NOT NULL DEFAULT '',
  webhook_uid         TEXT NOT NULL DEFAULT '',
  delivery_uid        TEXT NOT NULL DEFAULT '',
  agent_uid           TEXT NOT NULL DEFAULT '',
  config_name         TEXT COLLATE "C" NOT NULL DEFAULT '',
  model_id            TEXT NOT NULL DEFAULT '',
  environment_id      TEXT NOT NULL DEFAULT '',
  skill_spec          TEXT NOT NULL DEFAULT '',
  waits_for           TEXT NOT NULL DEFAULT '' CHECK (
    waits_for = ''
    OR waits_for = 'debounce'
    OR waits_for = 'concurrency'
    OR waits_for = 'retry'
    OR waits_for = 'budget'
  ),
  execution           BIGINT NOT NULL DEFAULT 1,
  attempt             BIGINT NOT NULL DEFAULT 1,
  next_seq            BIGINT NOT NULL DEFAULT 1,
  appended            BIGINT NOT NULL DEFAULT 0,
  claims              BIGINT NOT NULL DEFAULT 0,
  live                BIGINT NOT NULL DEFAULT 0 CHECK (live = 0 OR live = 1),
  checkout_head       BIGINT NOT NULL DEFAULT 0 CHECK (checkout_head = 0 OR checkout_head = 1),
  questions           BIGINT NOT NULL DEFAULT 0 CHECK (questions >= 0),
  parked_until        BIGINT NOT NULL DEFAULT 0,
  parked_by           TEXT NOT NULL DEFAULT '',
  worker              TEXT NOT NULL DEFAULT '',
  worker_name         TEXT NOT NULL DEFAULT '',
  claim_hash          BYTEA,
  lease_until         BIGINT,
  cancel_requested_at BIGINT,
  created_at          BIGINT NOT NULL,
  updated_at          BIGINT NOT NULL,
  queued_at           BIGINT NOT NULL,
  started_at          BIGINT,
  finished_at         BIGINT,
  error_code          TEXT NOT NULL DEFAULT '',
  traceparent         TEXT NOT NULL DEFAULT '',
  title               TEXT COLLATE "C" NOT NULL,
  prompt              TEXT NOT NULL,
  envelope            TEXT NOT NULL DEFAULT '',
  trigger_url         TEXT NOT NULL DEFAULT '',
  config              TEXT NOT NULL DEFAULT '{}',
  sealed              BYTEA,
  secrets             TEXT NOT NULL DEFAULT '[]',
  metadata            TEXT NOT NULL DEFAULT '{}',
  skills              TEXT NOT NULL DEFAULT '[]',
  usage               TEXT NOT NULL DEFAULT '',
  status_message      TEXT NOT NULL DEFAULT '',
  flow                TEXT NOT NULL DEFAULT '',
  CHECK (claim_hash IS NULL OR state = 'CLAIMED' OR state = 'INPROGRESS' OR state = 'BLOCKED'),
  CHECK (claim_hash IS NOT NULL OR state <> 'CLAIMED' AND state <> 'INPROGRESS'),
  CHECK (claim_hash IS NOT NULL OR live = 0),
  CHECK ((claim_hash IS NULL) = (lease_until IS NULL)),
  CHECK (
    (state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'ERROR' OR state = 'CANCELLED'
      OR state = 'BLOCKED' AND claim_hash IS NULL)
    = (finished_at IS NOT NULL)
  ),
  CHECK (state <> 'QUEUED' OR cancel_requested_at IS NULL),
  CHECK (waits_for = '' OR state = 'QUEUED'),
  CHECK ((waits_for = 'budget') = (parked_until > 0))
);

-- The run's own life. No index has lease_until, so that a heartbeat writes the row alone.

-- Claims the queued runs that wait for a worker alone, the oldest of one factory after the other, and counts
-- them. Finds those that wait for a time, and counts those that wait for others of their automation.
CREATE INDEX runs_queued ON runs (waits_for, factory_uid, queued_at, id)
  WHERE state = 'QUEUED';
-- Finds the runs whose lease ran out, or whose worker ended. Filter state, where only workers hold such
-- runs.
CREATE INDEX runs_held ON runs (updated_at, id)
  WHERE claim_hash IS NOT NULL;
-- Forbids a second run of a delivery and automation. Filter delivery_id.
CREATE UNIQUE INDEX runs_by_delivery ON runs (delivery_uid, automation_uid)
  WHERE delivery_uid <> '';
-- Finds the runs of a conversation.
CREATE INDEX runs_by_conversation ON runs (conversation_id);

-- The live runs of every list. It has what lists select by, so that no row of another run is read. (SQLite
-- reads a row for its finished_at too, though the index implies it.)
CREATE INDEX runs_live ON runs (
  updated_at,
  id,
  created_at,
  state,
  source,
  factory_uid,
  creator_uid,
  automation_uid,
  webhook_uid,
  config_name,
  finished_at
) WHERE finished_at IS NULL;
-- The same, in the order agent.
CREATE INDEX runs_live_by_agent ON runs (config_name, updated_at, id)
  WHERE finished_at IS NULL;

-- Lists in the order of the last update: the runs that have ended, by one filter each.

-- No filter, and filter updated_after.
CREATE INDEX runs_by_update ON runs (updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter state. Retention of the runs that ended in a state, the oldest first. Counts of the dashboard's
-- chart.
CREATE INDEX runs_by_state ON runs (state, updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter source.
CREATE INDEX runs_by_source ON runs (source, updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter factory_uid.
CREATE INDEX runs_by_factory ON runs (factory_uid, updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter creator.
CREATE INDEX runs_by_creator ON runs (creator_uid, updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter name. Order agent.
CREATE INDEX runs_by_agent ON runs (config_name, updated_at, id)
  WHERE finished_at IS NOT NULL;
-- Filter automation_id.
CREATE INDEX runs_by_automation ON runs (automation_uid, updated_at, id)
  WHERE finished_at IS NOT NULL AND automation_uid <> '';
-- Filter webhook_id.
CREATE INDEX runs_by_webhook ON runs (webhook_uid, updated_at, id)
  WHERE finished_at IS NOT NULL AND webhook_uid <> '';
-- Filter ancestor_run_id: the descendants of a run have its root.
CREATE INDEX runs_by_root ON runs (root_run_id, updated_at, id)
  WHERE parent_run_id <> '';
-- Filter created_before: what was made before a time and updated after it is found by how long it took.
CREATE INDEX runs_by_duration ON runs (
  (CASE
    WHEN updated_at - created_at < 16000000 THEN 0
    WHEN updated_at - created_at < 256000000 THEN 1
    WHEN updated_at - created_at < 4096000000 THEN 2
    WHEN updated_at - created_at < 65536000000 THEN 3
    WHEN updated_at - created_at < 1048576000000 THEN 4
    ELSE 5
  END),
  updated_at,
  id,
  created_at,
  finished_at
) WHERE finished_at IS NOT NULL;

-- Lists in other orders: all runs.

-- Order created_at, filters created_after and created_before.
CREATE INDEX runs_by_creation ON runs (created_at, id);
-- Order title.
CREATE INDEX runs_by_title ON runs (title, id);

CREATE TABLE run_metadata (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  key         TEXT NOT NULL,
  value       TEXT NOT NULL,
  PRIMARY KEY (run_id, key)
);
-- Filter metadata[key]: the runs that have a value.
CREATE INDEX run_metadata_by_value ON run_metadata (key, value, run_id);

-- The processes that take runs, as each last said of itself. worker is what its claims are bound to.
CREATE TABLE workers (
  uid         TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  worker      TEXT NOT NULL,
  report      TEXT NOT NULL,
  seen_at     BIGINT NOT NULL
);

-- The runs that the keys of automations' flows name. hash is of the values that a delivery has at a key. Of the
-- part concurrency: each run that has not ended, in order; waiting is 1 while the run waits for the others. Of
-- debounce: the run whose window is open. Of conversation: the run that later deliveries go to.
CREATE TABLE flow_keys (
  automation_uid TEXT NOT NULL,
  part           TEXT NOT NULL CHECK (part = 'concurrency' OR part = 'debounce' OR part = 'conversation'),
  waiting        BIGINT NOT NULL CHECK (waiting = 0 OR waiting = 1),
  hash           TEXT NOT NULL,
  position       BIGINT NOT NULL,
  run_id         TEXT NOT NULL,
  factory_uid    TEXT NOT NULL,
  used_at        BIGINT NOT NULL,
  PRIMARY KEY (automation_uid, part, waiting, hash, position)
);

-- What flow made of deliveries that did not start a run of their own, by automation and run; run_id is empty
-- where nothing started. The row of the delivery has the same for readers of the log.
CREATE TABLE flow_decisions (
  automation_uid TEXT NOT NULL,
  run_id         TEXT NOT NULL,
  delivery_uid   TEXT NOT NULL,
  factory_uid    TEXT NOT NULL,
  webhook_uid    TEXT NOT NULL,
  decision       TEXT NOT NULL,
  at             BIGINT NOT NULL,
  PRIMARY KEY (automation_uid, run_id, delivery_uid)
);

-- The automations that a delivery starts if an answer of its forge says so. due_at is when the forge is asked next.
CREATE TABLE undecided (
  automation_uid TEXT NOT NULL,
  delivery_uid   TEXT NOT NULL,
  factory_uid    TEXT NOT NULL,
  webhook_uid    TEXT NOT NULL,
  attempts       BIGINT NOT NULL,
  due_at         BIGINT NOT NULL,
  received_at    BIGINT NOT NULL,
  PRIMARY KEY (automation_uid, delivery_uid)
);

-- What happened in a run, in order: messages of the conversation and changes of state.
CREATE TABLE run_entries (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  seq         BIGINT NOT NULL,
  factory_uid TEXT NOT NULL DEFAULT '',
  execution   BIGINT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind = 'user' OR kind = 'assistant' OR kind = 'state'),
  content     TEXT NOT NULL,
  at          BIGINT NOT NULL,
  PRIMARY KEY (run_id, seq)
);

-- Messages to runs. live is 1 for one that the worker of the execution hands to the agent, 2 when it has.
CREATE TABLE followups (
  uid         TEXT NOT NULL,
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  message     TEXT NOT NULL,
  execution   BIGINT NOT NULL,
  live        BIGINT NOT NULL DEFAULT 0 CHECK (live IN (0, 1, 2)),
  created_at  BIGINT NOT NULL,
  delivery_uid TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, uid)
);

-- What agents ask before they go on. A question is closed when it was answered, or when its run went on without.
-- late is 1 when the session that asked did not live to see the answer.
CREATE TABLE run_questions (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  uid         TEXT NOT NULL,
  factory_uid TEXT NOT NULL DEFAULT '',
  execution   BIGINT NOT NULL,
  question    TEXT NOT NULL,
  asked_at    BIGINT NOT NULL,
  closed_at   BIGINT,
  choice      TEXT NOT NULL DEFAULT '',
  message     TEXT NOT NULL DEFAULT '',
  answered_by TEXT NOT NULL DEFAULT '',
  late        BIGINT NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
  PRIMARY KEY (run_id, uid),
  CHECK (closed_at IS NOT NULL OR choice = '')
);

CREATE TABLE attachments (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  file_name   TEXT NOT NULL,
  mime_type   TEXT NOT NULL,
  body        BYTEA NOT NULL,
  PRIMARY KEY (run_id, file_name)
);

-- The repositories that a run is checked out from. base_commit is empty until a worker told it; untrusted means that
-- the run was started for a commit that no branch of the repository has.
CREATE TABLE run_repositories (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position    BIGINT NOT NULL CHECK (position >= 0),
  forge       TEXT NOT NULL,
  owner       TEXT NOT NULL,
  name        TEXT NOT NULL,
  base_commit TEXT NOT NULL DEFAULT '',
  base_branch TEXT NOT NULL DEFAULT '',
  untrusted   BIGINT NOT NULL DEFAULT 0 CHECK (untrusted IN (0, 1)),
  foreign_head BIGINT NOT NULL DEFAULT 0 CHECK (foreign_head IN (0, 1)),
  PRIMARY KEY (run_id, position)
);

-- What the last execution of a run left for the next one: the session of its agent, and its work tree.
CREATE TABLE run_snapshots (
  run_id      TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  execution   BIGINT NOT NULL,
  session     TEXT NOT NULL,
  digest      TEXT NOT NULL,
  size        BIGINT NOT NULL,
  first_part  BIGINT NOT NULL,
  created_at  BIGINT NOT NULL
);
-- Deletes the oldest of a factory beyond its share.
CREATE INDEX run_snapshots_by_factory ON run_snapshots (factory_uid, created_at, run_id, size);

-- The archive of a snapshot in parts. The number of a part has its execution and attempt.
CREATE TABLE run_snapshot_parts (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  part        BIGINT NOT NULL,
  factory_uid TEXT NOT NULL DEFAULT '',
  sealed      BYTEA NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (run_id, part)
);

-- Files and links that the executions of a run left for people. A file is sent, then complete, and visible as
-- current once its execution has ended; replaced when a later execution left the same file anew. facts has what
-- only some types have.
CREATE TABLE run_artifacts (
  uid         TEXT NOT NULL UNIQUE,
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  execution   BIGINT NOT NULL,
  attempt     BIGINT NOT NULL,
  number      BIGINT NOT NULL,
  factory_uid TEXT NOT NULL DEFAULT '',
  state       TEXT NOT NULL CHECK (state = 'sent' OR state = 'complete' OR state = 'current' OR state = 'replaced'),
  type        TEXT NOT NULL CHECK (
    type = 'FILE'
    OR type = 'SCREENSHOT'
    OR type = 'PLAN'
    OR type = 'PULL_REQUEST'
    OR type = 'EXTERNAL_REFERENCE'
  ),
  kind        TEXT NOT NULL CHECK (kind = 'file' OR kind = 'patch' OR kind = 'bundle' OR kind = 'link'),
  repository  TEXT NOT NULL DEFAULT '',
  path        TEXT NOT NULL DEFAULT '',
  mime_type   TEXT NOT NULL DEFAULT '',
  digest      TEXT NOT NULL DEFAULT '',
  size        BIGINT NOT NULL CHECK (size >= 0),
  facts       TEXT NOT NULL DEFAULT '{}',
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (run_id, execution, attempt, number)
);
-- Filter artifact_type: the runs that have one.
CREATE INDEX run_artifacts_by_type ON run_artifacts (type, run_id)
  WHERE state = 'current';
-- Deletes the oldest of a factory beyond its share.
CREATE INDEX run_artifacts_by_factory ON run_artifacts (factory_uid, created_at, uid, size);

-- The contents of files in parts.
CREATE TABLE run_artifact_parts (
  artifact_uid TEXT NOT NULL REFERENCES run_artifacts (uid) ON DELETE CASCADE,
  part         BIGINT NOT NULL,
  factory_uid  TEXT NOT NULL DEFAULT '',
  body         BYTEA NOT NULL,
  PRIMARY KEY (artifact_uid, part)
);

-- What the attempts of a run have asked of each language model. Without a model: what none is named for.
CREATE TABLE run_usage (
  run_id         TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  execution      BIGINT NOT NULL,
  attempt        BIGINT NOT NULL,
  model_id       TEXT NOT NULL,
  factory_uid    TEXT NOT NULL DEFAULT '',
  automation_uid TEXT NOT NULL DEFAULT '',
  input_tokens   BIGINT NOT NULL CHECK (input_tokens >= 0),
  output_tokens  BIGINT NOT NULL CHECK (output_tokens >= 0),
  cached_tokens  BIGINT NOT NULL CHECK (cached_tokens >= 0),
  cost_usd       DOUBLE PRECISION CHECK (cost_usd >= 0),
  at             BIGINT NOT NULL,
  PRIMARY KEY (run_id, execution, attempt, model_id)
);

-- What the definition said of the outputs of a run when its execution was claimed. target is what its delivery
-- is about, once that is known.
CREATE TABLE output_policies (
  run_id      TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL,
  execution   BIGINT NOT NULL,
  policy      TEXT NOT NULL,
  target      TEXT NOT NULL DEFAULT ''
);

-- What the server performs for runs at a forge. next_at is when a pending output is due, and when the lease of
-- the server ends that performs it. revision counts the changes of body, attempts the servers that took it.
-- account is the login that performs it, from before the forge hears of it.
CREATE TABLE outputs (
  uid            TEXT PRIMARY KEY,
  run_id         TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid    TEXT NOT NULL,
  automation_uid TEXT NOT NULL,
  execution      BIGINT NOT NULL,
  kind           TEXT NOT NULL CHECK (
    kind IN ('pull_request', 'comment', 'label', 'review', 'status', 'reference')
  ),
  state          TEXT NOT NULL CHECK (
    state IN ('pending', 'staged', 'doing', 'done', 'failed', 'rejected', 'refused')
  ),
  body           TEXT NOT NULL,
  revision       BIGINT NOT NULL DEFAULT 1,
  attempts       BIGINT NOT NULL DEFAULT 0,
  next_at        BIGINT NOT NULL,
  reason         TEXT NOT NULL DEFAULT '',
  url            TEXT NOT NULL DEFAULT '',
  decided_by     TEXT NOT NULL DEFAULT '',
  account        TEXT NOT NULL DEFAULT '',
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL
);
-- Lists the outputs of a run, and finds its status.
CREATE INDEX outputs_by_run ON outputs (run_id, uid);
-- Finds what is to be performed and what lately was, and lists what failed or waits for a person.
CREATE INDEX outputs_by_state ON outputs (state, next_at, uid);

-- What receivers outside are told: a row for each event and notification that asked for it. next_at is when a
-- pending event is due, give_up_at when a failure ends it. attempts counts all, tries those since the event was
-- made or replayed.
CREATE TABLE events (
  uid              TEXT PRIMARY KEY,
  factory_uid      TEXT NOT NULL,
  notification_uid TEXT NOT NULL,
  notification     TEXT NOT NULL,
  type             TEXT NOT NULL,
  run_id           TEXT NOT NULL,
  state            TEXT NOT NULL CHECK (state = 'pending' OR state = 'sent' OR state = 'dead' OR state = 'dropped'),
  data             TEXT NOT NULL,
  attempts         BIGINT NOT NULL DEFAULT 0,
  tries            BIGINT NOT NULL DEFAULT 0,
  next_at          BIGINT NOT NULL,
  give_up_at       BIGINT NOT NULL,
  reason           TEXT NOT NULL DEFAULT '',
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL
);
-- Finds the notifications that events wait for, and their events that are due.
CREATE INDEX events_waiting ON events (notification_uid, next_at, uid)
  WHERE state = 'pending';
-- Lists and expires the events of a factory, the newest first.
CREATE INDEX events_by_factory ON events (factory_uid, uid);
-- Counts, lists and replays what was given up.
CREATE INDEX events_dead ON events (factory_uid, notification, uid)
  WHERE state = 'dead';

-- The last attempts to send an event. status is that of the answer, 0 without one.
CREATE TABLE event_attempts (
  event_uid   TEXT NOT NULL REFERENCES events (uid) ON DELETE CASCADE,
  number      BIGINT NOT NULL,
  factory_uid TEXT NOT NULL,
  at          BIGINT NOT NULL,
  took        BIGINT NOT NULL,
  status      BIGINT NOT NULL,
  error       TEXT NOT NULL,
  answer      TEXT NOT NULL,
  PRIMARY KEY (event_uid, number)
);

-- The webhooks that the server makes at forges. next_at is when it looks at one again, and when the lease of the
-- server ends that does. revision counts what applies wrote.
CREATE TABLE registrations (
  webhook_uid  TEXT NOT NULL REFERENCES webhooks (uid),
  factory_uid  TEXT NOT NULL,
  forge        TEXT NOT NULL CHECK (forge IN ('github', 'gitlab', 'gitea')),
  repository   TEXT NOT NULL,
  events       TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('pending', 'registered', 'drifted', 'failed', 'removing')),
  reason       TEXT NOT NULL DEFAULT '',
  hook_id      BIGINT NOT NULL DEFAULT 0,
  attempts     BIGINT NOT NULL DEFAULT 0,
  revision     BIGINT NOT NULL DEFAULT 1,
  next_at      BIGINT NOT NULL,
  checked_at   BIGINT NOT NULL DEFAULT 0,
  caught_up_at BIGINT NOT NULL DEFAULT 0,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (webhook_uid, forge, repository)
);

-- The deliveries that the server asks a forge to send again: they do not count against its budget. sent is 1 once
-- the forge has agreed or refused.
CREATE TABLE redeliveries (
  webhook_uid TEXT NOT NULL REFERENCES webhooks (uid),
  factory_uid TEXT NOT NULL,
  delivery    TEXT NOT NULL,
  asked_at    BIGINT NOT NULL,
  sent        BIGINT NOT NULL DEFAULT 0 CHECK (sent IN (0, 1)),
  PRIMARY KEY (webhook_uid, delivery)
);

-- What runs used in a day: all runs (scope is empty), those of a factory, an agent or an automation. A day is a
-- number of days since the Unix epoch, UTC. told is 1 when events told that a budget of the scope is spent.
CREATE TABLE usage_days (
  scope       TEXT NOT NULL,
  day         BIGINT NOT NULL,
  factory_uid TEXT NOT NULL DEFAULT '',
  runs        BIGINT NOT NULL DEFAULT 0,
  tokens      BIGINT NOT NULL DEFAULT 0,
  cost_usd    DOUBLE PRECISION NOT NULL DEFAULT 0,
  unpriced    BIGINT NOT NULL DEFAULT 0,
  stopped     BIGINT NOT NULL DEFAULT 0,
  told        BIGINT NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
  PRIMARY KEY (scope, day)
);

-- The budgets of applied definitions. scope is the UID of a factory, an agent or an automation.
CREATE TABLE budgets (
  scope       TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL,
  budget      TEXT NOT NULL,
  place       TEXT NOT NULL
);

-- What the first request with an Idempotency-Key made.
CREATE TABLE idempotency (
  key_uid      TEXT NOT NULL,
  factory_uid  TEXT NOT NULL DEFAULT '',
  hash         BYTEA NOT NULL,
  request_hash BYTEA NOT NULL,
  run_id       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (key_uid, hash)
);
-- Deletes what is older than it is kept.
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- The files of applied definitions, for a rollback. Revisions with the same files are one row.
CREATE TABLE applied_trees (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  digest      TEXT NOT NULL,
  revision    TEXT NOT NULL,
  applied_at  BIGINT NOT NULL,
  replaced_at BIGINT,
  size        BIGINT NOT NULL,
  files       BYTEA NOT NULL,
  PRIMARY KEY (factory_uid, digest)
);

-- Who changed what, in the order of time.
CREATE TABLE audit_log (
  at          BIGINT NOT NULL,
  uid         TEXT COLLATE "C" NOT NULL,
  factory_uid TEXT NOT NULL,
  actor_kind  TEXT NOT NULL,
  actor_uid   TEXT NOT NULL,
  actor       TEXT NOT NULL,
  source      TEXT NOT NULL,
  action      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  detail      TEXT NOT NULL,
  PRIMARY KEY (at, uid)
);
-- +goose StatementEnd
