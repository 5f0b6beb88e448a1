-- +goose Up

-- What a provider sent, unsigned, as the secret of a webhook that waits for it: the last, until its owner decides.
CREATE TABLE offered_secrets (
  webhook_uid TEXT PRIMARY KEY REFERENCES webhooks (uid),
  factory_uid TEXT NOT NULL,
  sealed      BYTEA NOT NULL,
  sender      TEXT NOT NULL,
  received_at BIGINT NOT NULL,
  count       BIGINT NOT NULL
);
