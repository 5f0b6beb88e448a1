-- +goose Up

-- CHECKs of the tables on the hot path are chains of OR: for IN with a list, SQLite makes a temporary table in each statement.

-- One row a state: facts about the state itself.
CREATE TABLE facts (
  name  TEXT PRIMARY KEY,
  value BYTEA NOT NULL
);

CREATE TABLE routing (
  id         BIGINT PRIMARY KEY CHECK (id = 1),
  generation BIGINT NOT NULL
);
INSERT INTO routing (id, generation) VALUES (1, 1);

CREATE TABLE replicas (
  uid         TEXT PRIMARY KEY,
  generation  BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
);

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
  generation         BIGINT NOT NULL,
  source             TEXT NOT NULL,
  spec               TEXT NOT NULL DEFAULT 'null',
  detached           BIGINT NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),
  suspended          BIGINT NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1)),
  sync_state         TEXT NOT NULL DEFAULT 'pending' CHECK (sync_state IN ('pending', 'applied', 'refused', 'failed')),
  sync_since         BIGINT NOT NULL,
  attempted_revision TEXT NOT NULL DEFAULT '{}',
  applied_revision   TEXT NOT NULL DEFAULT '{}',
  last_attempted_at  BIGINT,
  last_applied_at    BIGINT,
  problems           TEXT NOT NULL DEFAULT '[]',
  message            TEXT NOT NULL DEFAULT '',
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL
);

-- One row an attempt to apply.
CREATE TABLE syncs (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  revision    TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('applied', 'refused', 'unchanged', 'failed')),
  counts      TEXT NOT NULL,
  problems    TEXT NOT NULL,
  message     TEXT NOT NULL
);
CREATE INDEX syncs_by_factory ON syncs (factory_uid, id);

-- Secrets belong to the team, as API keys do: factory_uid is empty. A version without a sealed value is pending.
CREATE TABLE secrets (
  name        TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  version     BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);

CREATE TABLE secret_versions (
  name          TEXT NOT NULL REFERENCES secrets (name) ON DELETE CASCADE,
  factory_uid   TEXT NOT NULL DEFAULT '',
  version       BIGINT NOT NULL,
  sealed        BYTEA,
  url_safe      BIGINT NOT NULL CHECK (url_safe IN (0, 1)),
  visible_ascii BIGINT NOT NULL CHECK (visible_ascii IN (0, 1)),
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (name, version)
);

CREATE TABLE webhooks (
  id             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid            TEXT NOT NULL UNIQUE,
  factory_uid    TEXT NOT NULL REFERENCES factories (uid),
  name           TEXT NOT NULL,
  ordinal        BIGINT NOT NULL,
  spec           TEXT NOT NULL,
  secret_name    TEXT,
  secret_version BIGINT,
  created_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  deleted_at     BIGINT,
  UNIQUE (factory_uid, name, ordinal),
  CHECK ((deleted_at IS NULL) = (secret_version IS NOT NULL)),
  FOREIGN KEY (secret_name, secret_version) REFERENCES secret_versions (name, version)
);
CREATE UNIQUE INDEX webhooks_live ON webhooks (factory_uid, name) WHERE deleted_at IS NULL;
CREATE INDEX webhooks_by_secret ON webhooks (secret_name);

-- Automations, agents, runners and skills.
CREATE TABLE resources (
  uid         TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  kind        TEXT NOT NULL CHECK (kind IN ('automation', 'agent', 'runner', 'skill')),
  name        TEXT NOT NULL,
  spec        TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  deleted_at  BIGINT
);
CREATE UNIQUE INDEX resources_live ON resources (factory_uid, kind, name) WHERE deleted_at IS NULL;

CREATE TABLE api_keys (
  uid         TEXT PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  name        TEXT NOT NULL,
  role        TEXT NOT NULL CHECK (role IN ('viewer', 'runner', 'admin', 'worker')),
  hash        BYTEA NOT NULL UNIQUE,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT,
  revoked_at  BIGINT
);

-- Which identities a webhook has accepted. Narrow, because its keys are random and it is on the hot path.
CREATE TABLE identities (
  webhook_id   BIGINT NOT NULL,
  hash         BYTEA NOT NULL,
  delivery_uid TEXT NOT NULL,
  PRIMARY KEY (webhook_id, hash)
);

-- The delivery log, newest last in the order of uid. A row with count above 1 stands for several rejected requests.
CREATE TABLE deliveries (
  webhook_id      BIGINT NOT NULL REFERENCES webhooks (id),
  uid             TEXT COLLATE "C" NOT NULL,
  factory_uid     TEXT NOT NULL,
  outcome         TEXT NOT NULL CHECK (outcome = 'accepted' OR outcome = 'duplicate' OR outcome = 'rejected_auth' OR outcome = 'rejected_invalid_json' OR outcome = 'rejected_too_large' OR outcome = 'handshake'),
  reason          TEXT NOT NULL DEFAULT '',
  size_bytes      BIGINT,
  size_max        BIGINT,
  received_at     BIGINT NOT NULL,
  identity        TEXT NOT NULL DEFAULT '',
  identity_source TEXT NOT NULL DEFAULT '' CHECK (identity_source = '' OR identity_source = 'header' OR identity_source = 'provider' OR identity_source = 'service_header' OR identity_source = 'body_hash'),
  sender          TEXT NOT NULL,
  duplicate_of    TEXT NOT NULL DEFAULT '',
  replay_of       TEXT NOT NULL DEFAULT '',
  event           TEXT NOT NULL DEFAULT '',
  generation      BIGINT NOT NULL DEFAULT 0,
  count           BIGINT NOT NULL DEFAULT 1,
  last_at         BIGINT,
  PRIMARY KEY (webhook_id, uid)
);

CREATE TABLE payloads (
  delivery_uid TEXT PRIMARY KEY,
  factory_uid  TEXT NOT NULL,
  body         BYTEA NOT NULL
);
-- Where the server was built with it, lz4 costs the hot path less.
-- +goose StatementBegin
DO $$ BEGIN
  ALTER TABLE payloads ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;
-- +goose StatementEnd

CREATE TABLE runs (
  id                  TEXT PRIMARY KEY,
  factory_uid         TEXT NOT NULL DEFAULT '',
  title               TEXT COLLATE "C" NOT NULL,
  prompt              TEXT NOT NULL,
  envelope            TEXT NOT NULL DEFAULT '',
  state               TEXT NOT NULL CHECK (state = 'QUEUED' OR state = 'CLAIMED' OR state = 'INPROGRESS' OR state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'ERROR' OR state = 'BLOCKED' OR state = 'CANCELLED'),
  source              TEXT NOT NULL,
  creator_type        TEXT NOT NULL CHECK (creator_type IN ('user', 'service_account')),
  creator_uid         TEXT NOT NULL,
  creator_name        TEXT NOT NULL,
  conversation_id     TEXT NOT NULL,
  parent_run_id       TEXT NOT NULL DEFAULT '',
  root_run_id         TEXT NOT NULL,
  automation_uid      TEXT NOT NULL DEFAULT '',
  webhook_uid         TEXT NOT NULL DEFAULT '',
  delivery_uid        TEXT NOT NULL DEFAULT '',
  agent_uid           TEXT NOT NULL DEFAULT '',
  trigger_url         TEXT NOT NULL DEFAULT '',
  config              TEXT NOT NULL DEFAULT '{}',
  sealed              BYTEA,
  secrets             TEXT NOT NULL DEFAULT '[]',
  config_name         TEXT COLLATE "C" NOT NULL DEFAULT '',
  model_id            TEXT NOT NULL DEFAULT '',
  environment_id      TEXT NOT NULL DEFAULT '',
  skill_spec          TEXT NOT NULL DEFAULT '',
  metadata            TEXT NOT NULL DEFAULT '{}',
  skills              TEXT NOT NULL DEFAULT '[]',
  execution           BIGINT NOT NULL DEFAULT 1,
  attempt             BIGINT NOT NULL DEFAULT 1,
  next_seq            BIGINT NOT NULL DEFAULT 1,
  appended            BIGINT NOT NULL DEFAULT 0,
  worker              TEXT NOT NULL DEFAULT '',
  worker_name         TEXT NOT NULL DEFAULT '',
  claim_hash          BYTEA,
  lease_until         BIGINT,
  cancel_requested_at BIGINT,
  status_message      TEXT NOT NULL DEFAULT '',
  error_code          TEXT NOT NULL DEFAULT '',
  created_at          BIGINT NOT NULL,
  updated_at          BIGINT NOT NULL,
  queued_at           BIGINT NOT NULL,
  started_at          BIGINT,
  finished_at         BIGINT,
  CHECK ((state IN ('CLAIMED', 'INPROGRESS')) = (claim_hash IS NOT NULL)),
  CHECK ((claim_hash IS NULL) = (lease_until IS NULL)),
  CHECK ((state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'ERROR' OR state = 'BLOCKED' OR state = 'CANCELLED') = (finished_at IS NOT NULL)),
  CHECK (state <> 'QUEUED' OR cancel_requested_at IS NULL)
);
-- Every filter that may match much has an index that is in the order of the default list, so that a page
-- costs the same however many runs there are.
CREATE INDEX runs_by_update ON runs (updated_at, id);
CREATE INDEX runs_by_creation ON runs (created_at, id);
CREATE INDEX runs_by_title ON runs (title, id);
CREATE INDEX runs_by_name ON runs (config_name, updated_at, id);
CREATE INDEX runs_by_state ON runs (state, updated_at, id);
CREATE INDEX runs_by_source ON runs (source, updated_at, id);
CREATE INDEX runs_by_factory ON runs (factory_uid, updated_at, id);
CREATE INDEX runs_by_creator ON runs (creator_uid, updated_at, id);
CREATE INDEX runs_by_automation ON runs (automation_uid, updated_at, id) WHERE automation_uid <> '';
CREATE INDEX runs_by_webhook ON runs (webhook_uid, updated_at, id) WHERE webhook_uid <> '';
CREATE INDEX runs_by_model ON runs (model_id, updated_at, id) WHERE model_id <> '';
CREATE INDEX runs_by_environment ON runs (environment_id, updated_at, id) WHERE environment_id <> '';
CREATE INDEX runs_by_skill ON runs (skill_spec, updated_at, id) WHERE skill_spec <> '';
CREATE INDEX runs_by_worker ON runs (worker, updated_at, id) WHERE worker <> '';
CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id <> '';
CREATE UNIQUE INDEX runs_by_delivery ON runs (delivery_uid, automation_uid) WHERE delivery_uid <> '';
CREATE INDEX runs_queued ON runs (queued_at, id) WHERE state = 'QUEUED';
CREATE INDEX runs_leased ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation_id);

CREATE TABLE run_metadata (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  key         TEXT NOT NULL,
  value       TEXT NOT NULL,
  PRIMARY KEY (key, value, run_id)
);
CREATE INDEX run_metadata_by_run ON run_metadata (run_id);

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

CREATE TABLE followups (
  uid         TEXT PRIMARY KEY,
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  message     TEXT NOT NULL,
  execution   BIGINT NOT NULL,
  created_at  BIGINT NOT NULL
);
CREATE INDEX followups_by_run ON followups (run_id, uid);

CREATE TABLE attachments (
  run_id      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  factory_uid TEXT NOT NULL DEFAULT '',
  file_name   TEXT NOT NULL,
  mime_type   TEXT NOT NULL,
  body        BYTEA NOT NULL,
  PRIMARY KEY (run_id, file_name)
);

CREATE TABLE idempotency (
  key_uid      TEXT NOT NULL,
  factory_uid  TEXT NOT NULL DEFAULT '',
  hash         BYTEA NOT NULL,
  request_hash BYTEA NOT NULL,
  run_id       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (key_uid, hash)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Signed-in browsers. A session lives no longer than its key.
CREATE TABLE sessions (
  hash        BYTEA PRIMARY KEY,
  factory_uid TEXT NOT NULL DEFAULT '',
  key_uid     TEXT NOT NULL REFERENCES api_keys (uid),
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL
);
CREATE INDEX sessions_by_key ON sessions (key_uid, created_at);
