package admin

import (
	"fmt"

	"millwright/api"
)

// PageQuery asks for a page of a list.
type PageQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"20" doc:"Maximum number of items"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the previous page; absent for the first page"`
}

// cursor is the end of a page. List names the list, so that cursors of other lists are refused.
type cursor struct {
	List  string `json:"l"`
	After string `json:"a"`
}

// after returns the key of the last row of the previous page, or "" for the first page.
func (q PageQuery) after(list string) (string, error) {
	if q.Cursor == "" {
		return "", nil
	}

	var c cursor
	if err := api.DecodeCursor(q.Cursor, &c); err != nil {
		return "", err
	}
	if c.List != list || c.After == "" {
		return "", api.InvalidField("cursor", "not a cursor of this list: take next_cursor of the page before")
	}

	return c.After, nil
}

// page cuts rows, which may have one more than the limit, to a page of the list.
func page[T any](q PageQuery, list string, rows []T, key func(T) string) ([]T, api.PageInfo) {
	return api.Page(rows, q.Limit, func(row T) any { return cursor{list, key(row)} })
}

// paginate cuts a page out of a complete list in memory, in ascending or descending order of its keys.
func paginate[T any](
	q PageQuery,
	list string,
	all []T,
	key func(T) string,
	descending bool,
) ([]T, api.PageInfo, error) {
	after, err := q.after(list)
	if err != nil {
		return nil, api.PageInfo{}, err
	}

	rows := []T{}
	for _, row := range all {
		k := key(row)
		if after != "" && (k == after || (k < after) != descending) {
			continue
		}
		if rows = append(rows, row); len(rows) > q.Limit {
			break
		}
	}

	rows, info := page(q, list, rows, key)
	return rows, info, nil
}

// paddedNumber formats n so that texts sort like numbers.
func paddedNumber(n int) string { return fmt.Sprintf("%010d", n) }
