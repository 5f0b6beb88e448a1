-- +goose Up

-- The headers of deliveries that somebody listened to, as lines "Name: value"; of all others NULL.
ALTER TABLE payloads ADD COLUMN headers BYTEA;
