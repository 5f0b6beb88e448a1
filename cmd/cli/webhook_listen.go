package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"millwright/state"
)

func webhookListen(s Streams, c *Client) *cobra.Command {
	var forward string
	cmd := &cobra.Command{
		Use:   "listen WEBHOOK",
		Short: "Forward live deliveries to a local address, bytes and signature headers unchanged",
		Long: `Prints each delivery that the webhook accepts from now on, and posts it to --forward with
the bytes and headers of the sender, so that you can test what verifies signatures there.
It leaves out credentials: Authorization, cookies, and headers that have a secret or token.
Replays are forwarded, too. The server's answer and runs do not depend on it.

--forward needs the role runner, because a signed delivery can be sent again. After a lost
connection it continues without gaps or repeats. Ctrl-C ends it.`,
		Example: `  millwright webhook listen ci --forward http://localhost:3000/hook`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if u, err := url.Parse(forward); forward != "" &&
				(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
				return Usagef("--forward %q: want a URL like http://localhost:3000", clean(forward))
			}

			f, w, err := c.webhook(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			path := webhookPath(f, w) + "/deliveries"
			if forward != "" {
				if err := c.mayRead(cmd.Context(), path); err != nil {
					return err
				}
			}

			l := &listening{
				s: s, c: c, path: path, name: w.Name, forward: forward, seen: map[string]bool{},
				local: &http.Client{
					Timeout:       30 * time.Second,
					Transport:     &http.Transport{DisableCompression: true},
					CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
				},
			}

			return l.run(cmd.Context())
		},
	}

	cmd.Flags().
		StringVar(&forward, "forward", "", "post each delivery to this `URL` (default: only print it)")
	return cmd
}

// mayRead returns the refusal of a server that does not give the key's holder deliveries as they were sent.
func (c *Client) mayRead(ctx context.Context, deliveries string) error {
	_, err := c.call(ctx, http.MethodGet, deliveries+"/"+state.DeliveryUIDAt(time.Now())+"/request", nil)
	if no, ok := errors.AsType[*refusal](err); ok && no.status == http.StatusNotFound {
		return nil
	}
	return err
}

// listening follows the deliveries of a webhook.
type listening struct {
	s             Streams
	c             *Client
	path, name    string
	forward       string
	local         *http.Client
	first, latest string          // UIDs: where the stream began, and the last one received
	seen          map[string]bool // those that were handled, of late
}

const (
	reconnectFirst = time.Second
	reconnectMost  = 15 * time.Second
)

// run follows the stream until ctx ends, and connects again when it is lost. It gives up when the server
// refuses, or cannot be reached at first.
func (l *listening) run(ctx context.Context) error {
	for wait := reconnectFirst; ; wait = min(2*wait, reconnectMost) {
		before := l.latest
		err := l.follow(ctx)
		var none *noServer
		var no *refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && l.latest == "",
			errors.As(err, &no) && no.status < http.StatusInternalServerError &&
				no.status != http.StatusTooManyRequests:
			return err
		case err != nil && !errors.As(err, &none) && !errors.As(err, &no):
			return err
		}

		if l.latest != before {
			wait = reconnectFirst
		}

		fmt.Fprintf(l.s.Err, "the connection to %s was lost: trying again\n", l.c.Server)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// follow handles the events of one connection.
func (l *listening) follow(ctx context.Context) error {
	header := []string{"Accept", "text/event-stream"}
	if l.latest != "" {
		header = append(header, "Last-Event-ID", l.latest)
	}

	resp, err := l.c.send(ctx, http.MethodGet, l.path+"/events", nil, header...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	return readEvents(resp.Body, func(e event) error {
		switch e.name {
		case "listening":
			if e.id != "" {
				l.first, l.latest = e.id, e.id
			}
			fmt.Fprintf(l.s.Err, "listening to %s\n", clean(l.name))
		case "delivery":
			return l.handle(ctx, e)
		}

		return nil
	})
}

// handle shows a delivery and forwards it, once.
func (l *listening) handle(ctx context.Context, e event) error {
	var d struct {
		DeliveryID string    `json:"delivery_id"`
		SizeBytes  int64     `json:"size_bytes"`
		ReceivedAt time.Time `json:"received_at"`
		Event      string    `json:"event"`
	}
	if err := l.c.Decode(e.data, &d); err != nil || !state.ValidID(state.PrefixDelivery, d.DeliveryID) {
		return err
	}
	if l.seen[d.DeliveryID] || d.DeliveryID < l.first { // of before we listened
		return nil
	}

	result := ""
	if l.forward != "" {
		var err error
		if result, err = l.deliver(ctx, d.DeliveryID); err != nil {
			return err
		}
	}

	l.seen[d.DeliveryID], l.latest = true, max(l.latest, d.DeliveryID)
	if len(l.seen) > 10_000 {
		old := state.DeliveryUIDAt(state.DeliveryTime(l.latest).Add(-2 * time.Minute))
		maps.DeleteFunc(l.seen, func(uid string, _ bool) bool { return uid < old })
	}

	line := fmt.Sprintf("%s  %s  %d bytes", d.ReceivedAt.Local().Format(time.TimeOnly), d.DeliveryID, d.SizeBytes)
	for _, more := range []string{clean(d.Event), result} {
		if more != "" {
			line += "  " + more
		}
	}

	_, err := fmt.Fprintln(l.s.Out, line)
	return err
}

// deliver posts a delivery to the local address and prints the result. Its errors are those of the server.
func (l *listening) deliver(ctx context.Context, uid string) (string, error) {
	stored, err := l.c.call(ctx, http.MethodGet, l.path+"/"+uid+"/request", nil)
	if no, ok := errors.AsType[*refusal](err); ok && no.status == http.StatusNotFound {
		return "→ gone", nil
	}
	if err != nil {
		return "", err
	}

	head, body, _ := bytes.Cut(stored, []byte("\r\n\r\n"))
	sent, err := http.ReadRequest(
		bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader([]byte("\r\n\r\n")))),
	)
	if err != nil {
		return "", &Exit{
			ExitUnreachable,
			fmt.Errorf("%s answered with something that is not the API's: %w", l.c.Server, err),
		}
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.forward, bytes.NewReader(body))
	if err != nil {
		return "", Usagef("--forward: %w", err)
	}

	note := ""
	if len(sent.Header) == 0 {
		note = " (its headers were not kept)"
	}
	if req.Header = sent.Header; req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = nil // not the client's own
	}

	began := time.Now()
	resp, err := l.local.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}

		return "→ " + clean(err.Error()) + note, nil
	}
	defer resp.Body.Close()

	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return fmt.Sprintf("→ %d in %d ms%s", resp.StatusCode, time.Since(began).Milliseconds(), note), nil
}

// event is one server-sent event.
type event struct {
	id, name string
	data     []byte
}

// maxEvent bounds one line of an event stream, in bytes.
const maxEvent = 16 << 20

// readEvents hands each event of a stream to f until the stream ends or f fails. A broken stream is an
// ended one: the caller asks the server for its end.
func readEvents(r io.Reader, f func(event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEvent)
	var e event
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if e.data != nil {
				if err := f(e); err != nil {
					return err
				}
			}

			e = event{}
			continue
		}

		switch field, value, _ := bytes.Cut(line, []byte(": ")); string(field) {
		case "id":
			e.id = string(value)
		case "event":
			e.name = string(value)
		case "data":
			e.data = bytes.Clone(value)
		}
	}

	return nil
}
