package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"millwright/schema"
)

// followRun prints what happens in a run until it ends. It connects again when the connection is lost, and
// gives up when the server is away for maxAway. A run that did not succeed is exit status 1.
func followRun(ctx context.Context, s Streams, c *Client, id string) error {
	last, away := "", time.Duration(0)
	for wait := reconnectFirst; ; wait = min(2*wait, reconnectMost) {
		err := printEvents(ctx, s, c, id, &last)
		var r runItem
		if err == nil {
			err = c.Get(ctx, runPath(id), &r)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}

		var none *noServer
		var no *refusal
		again := errors.As(err, &none) ||
			errors.As(err, &no) &&
				(no.status >= http.StatusInternalServerError || no.status == http.StatusTooManyRequests)
		switch {
		case err == nil && r.ended():
			return r.outcome()
		case err == nil:
			wait, away = reconnectFirst, 0
		case last == "" || !again:
			return err
		case away > maxAway:
			return &Exit{
				ExitUnreachable,
				fmt.Errorf("%w; to go on: millwright run logs --follow %s", err, schema.ShellWord(clean(id))),
			}
		}

		fmt.Fprintf(s.Err, "the connection to %s was lost: trying again\n", c.Server)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			away += wait
		}
	}
}

// maxAway is how long a server may be away while a run is followed.
const maxAway = time.Minute

// printEvents prints the events of one connection that come after *last, and moves *last on.
func printEvents(ctx context.Context, s Streams, c *Client, id string, last *string) error {
	header := []string{"Accept", "text/event-stream"}
	if *last != "" {
		header = append(header, "Last-Event-ID", *last)
	}

	resp, err := c.send(ctx, http.MethodGet, runPath(id)+"/events", nil, header...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	return readEvents(resp.Body, func(e event) error {
		var data struct {
			Role    string
			Content []json.RawMessage
			State   string
		}
		if e.id != "" {
			*last = e.id
		}
		if json.Unmarshal(e.data, &data) != nil {
			return nil
		}

		if e.name == "state" {
			fmt.Fprintf(s.Err, "%s\n", clean(data.State))
		} else if len(data.Content) > 0 {
			printMessage(s.Out, data.Role, data.Content)
		}

		return nil
	})
}
