-- +goose Up

-- What was refused is looked for among very many accepted deliveries. Those are not in this index, so that
-- accepting costs nothing more.
CREATE INDEX deliveries_by_outcome ON deliveries (webhook_id, outcome, uid) WHERE outcome <> 'accepted';
