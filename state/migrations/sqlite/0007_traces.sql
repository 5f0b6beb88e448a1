-- +goose Up

-- The trace that a run belongs to, in the form of W3C Trace Context; empty when none was begun.
ALTER TABLE runs ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
