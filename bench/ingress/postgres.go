package main

import (
	"database/sql"

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
