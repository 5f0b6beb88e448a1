-- +goose Up

-- What a provider sent, unsigned, as the secret of a webhook that waits for it: the last, until its owner decides.
CREATE TABLE offered_secrets (
  webhook_uid TEXT PRIMARY KEY REFERENCES webhooks (uid),
  factory_uid TEXT NOT NULL,
  sealed      BLOB NOT NULL,
  sender      TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  count       INTEGER NOT NULL
);
