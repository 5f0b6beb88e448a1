package api

import (
	"encoding/base64"
	"encoding/json"
)

// PageInfo says whether a list goes on, and from where (docs/contract.md).
type PageInfo struct {
	HasNextPage bool   `json:"has_next_page" doc:"Whether more follows"`
	NextCursor  string `json:"next_cursor" doc:"What to give as cursor for the next page; empty on the last"`
}

// EncodeCursor makes an opaque cursor of v.
func EncodeCursor(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// DecodeCursor reads a cursor that EncodeCursor made into v, a pointer. A cursor that is not of this
// list is an invalid_request.
func DecodeCursor(cursor string, v any) error {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return InvalidField("cursor", "not a cursor of this list: take next_cursor of the page before")
	}
	return nil
}

// Page cuts a list that was read with one row more than limit down to a page, and makes the cursor of
// its last row.
func Page[T any](rows []T, limit int, cursor func(T) any) ([]T, PageInfo) {
	if rows == nil {
		rows = []T{}
	}
	if len(rows) <= limit {
		return rows, PageInfo{}
	}
	rows = rows[:limit]
	return rows, PageInfo{HasNextPage: true, NextCursor: EncodeCursor(cursor(rows[limit-1]))}
}
