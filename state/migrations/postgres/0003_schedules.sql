-- +goose Up

-- When a schedule of an automation last fired, or was first seen.
CREATE TABLE schedules (
  automation_uid TEXT NOT NULL REFERENCES resources (uid) ON DELETE CASCADE,
  schedule       TEXT NOT NULL,
  factory_uid    TEXT NOT NULL,
  last_at        BIGINT NOT NULL,
  PRIMARY KEY (automation_uid, schedule)
);
