package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"millwright/api"
)

const (
	pageRows = 500     // of one answer of the API at most
	maxRows  = 100_000 // of one list
)

// listing says how much of a list to show.
type listing struct {
	limit  int
	all    bool
	cursor string
}

// whole is all of a list that has a bound of its own.
var whole = listing{all: true}

func (l *listing) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&l.limit, "limit", 20, "show at most `N`, 1 to 500")
	f.BoolVar(&l.all, "all", false, fmt.Sprintf("show all, up to %d", maxRows))
	f.StringVar(&l.cursor, "cursor", "", "continue an earlier list: the `CURSOR` that it printed")
	Exclusive(cmd, "limit", "all")
}

// rest is what a list leaves out.
type rest struct {
	shown  int
	cursor string // of what follows; empty when nothing does
}

// list reads as much of a list as l says, as one answer of the API. member names its rows.
func (c *Client) list(ctx context.Context, path, member string, q url.Values, l listing) ([]byte, rest, error) {
	if q == nil {
		q = url.Values{}
	}

	q.Set("limit", fmt.Sprint(l.limit))
	if l.all {
		q.Set("limit", fmt.Sprint(pageRows))
	}

	rows, cursor := []json.RawMessage{}, l.cursor
	for {
		if q.Del("cursor"); cursor != "" {
			q.Set("cursor", cursor)
		}

		body, err := c.call(ctx, http.MethodGet, path+"?"+q.Encode(), nil)
		if err != nil {
			return nil, rest{}, err
		}

		var answer map[string]json.RawMessage
		var page []json.RawMessage
		var info api.PageInfo
		if err := c.Decode(body, &answer); err != nil {
			return nil, rest{}, err
		}
		if err := c.Decode(answer[member], &page); err != nil {
			return nil, rest{}, err
		}
		if err := c.Decode(answer["page_info"], &info); err != nil {
			return nil, rest{}, err
		}

		first := len(rows) == 0
		rows, cursor = append(rows, page...), info.NextCursor
		if info.HasNextPage && l.all && len(rows) < maxRows {
			continue
		}

		left := rest{len(rows), cursor}
		if !info.HasNextPage {
			left.cursor = ""
		}
		if first {
			return body, left, nil
		}

		body, err = merged(answer, member, rows)
		return body, left, err
	}
}

// joined is the answers of several lists as one.
func (c *Client) joined(bodies [][]byte, member string) ([]byte, error) {
	if len(bodies) == 1 {
		return bodies[0], nil
	}

	all := []json.RawMessage{}
	for _, body := range bodies {
		var answer map[string]json.RawMessage
		var page []json.RawMessage
		if err := c.Decode(body, &answer); err != nil {
			return nil, err
		}
		if err := c.Decode(answer[member], &page); err != nil {
			return nil, err
		}

		all = append(all, page...)
	}

	info, err := json.Marshal(api.PageInfo{})
	if err != nil {
		return nil, err
	}
	return merged(map[string]json.RawMessage{"page_info": info}, member, all)
}

// merged is an answer of the API with the rows of several.
func merged(answer map[string]json.RawMessage, member string, rows []json.RawMessage) ([]byte, error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	answer[member] = text
	return json.Marshal(answer)
}

// note says on standard error what a table leaves out.
func (r rest) note(s Streams) {
	if r.cursor != "" {
		fmt.Fprintf(s.Err, "%d of more: --all, or --cursor %s\n", r.shown, r.cursor)
	}
}
