-- +goose Up

-- Revisions of the definitions that the server itself holds. tree names the content of all files of one.
CREATE TABLE file_revisions (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  number      INTEGER NOT NULL CHECK (number > 0),
  tree        TEXT NOT NULL,
  author      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  files       INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (factory_uid, number)
) WITHOUT ROWID;

-- Their files. A row is part of the revisions from since up to, not including, until; of the newest when until is NULL.
CREATE TABLE revision_files (
  factory_uid TEXT NOT NULL REFERENCES factories (uid),
  path        TEXT NOT NULL,
  since       INTEGER NOT NULL,
  until       INTEGER CHECK (until > since),
  size        INTEGER NOT NULL,
  content     BLOB NOT NULL,
  PRIMARY KEY (factory_uid, path, since)
);
CREATE UNIQUE INDEX revision_files_newest ON revision_files (factory_uid, path) WHERE until IS NULL;
CREATE INDEX revision_files_by_end ON revision_files (factory_uid, until);
