package api

import (
	"encoding/base64"
	"encoding/json"
)

// PageInfo tells whether a list has another page, and its cursor (docs/contract.md).
type PageInfo struct {
	HasNextPage bool   `json:"has_next_page" doc:"Whether there is another page"`
	NextCursor  string `json:"next_cursor" doc:"Cursor of the next page; empty on the last page"`
}

// EncodeCursor returns v as an opaque cursor.
func EncodeCursor(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// DecodeCursor reads a cursor of EncodeCursor into v, a pointer. It returns an invalid_request for a cursor
// of another list.
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

// Page cuts a list that was read with limit+1 rows to a page, and returns the cursor of its last row.
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
