package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes the schema
)

func psql(dsn, query string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(query)
	return err
}

// schemaOf makes an empty schema on the PostgreSQL server, and returns its address and what drops it.
func schemaOf(dsn string) (string, func(), error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}

	name := fmt.Sprintf("bench%d", time.Now().UnixNano())
	if err := psql(dsn, "CREATE SCHEMA "+name); err != nil {
		return "", nil, err
	}

	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func() { _ = psql(dsn, "DROP SCHEMA "+name+" CASCADE") }, nil
}
