package admin

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/api"
	"millwright/state"
	"millwright/state/notice"
)

// requestOutput is a stored request that browsers only download, since outsiders wrote it.
type requestOutput struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	NoSniff            string `header:"X-Content-Type-Options"`
	Policy             string `header:"Content-Security-Policy"`
	CacheControl       string `header:"Cache-Control"`
	Body               []byte
}

type listenInput struct {
	WebhookUID
	LastEventID string `header:"Last-Event-ID" maxLength:"30" doc:"ID of the last received event; the stream continues after it"`
}

func (s *service) registerListen() {
	const path = "/factory/{uid}/webhooks/{webhook_uid}/deliveries"
	s.api.Huma().OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Delivery](), true, "")
	api.Register(
		s.api,
		api.EventStream(api.Explained(
			api.Operation(http.MethodGet, path+"/events", "streamDeliveries", state.RoleViewer,
				"Follow the accepted deliveries of a webhook"),
			"Server-sent events: first listening, without data, then delivery with a Delivery for each "+
				"accepted delivery. While a key of role runner has an open stream, and for a minute "+
				"after, the server stores headers for getDeliveryRequest. A resumed stream may repeat "+
				"deliveries of the last half minute: compare their IDs.",
		)),
		s.listen,
	)

	op := api.Explained(
		api.Operation(
			http.MethodGet,
			path+"/{delivery_id}/request",
			"getDeliveryRequest",
			state.RoleRunner,
			"Get an accepted delivery as it was sent",
		),
		"The request in the form of HTTP/1.1: request line, stored headers, an empty line, and the body "+
			"byte for byte. Credentials are omitted, and {token} replaces a token in the URL. Signatures "+
			"are included: a reader can send the request again under another ID. Outsiders wrote the "+
			"content: do not trust it.",
	)

	op.Responses = map[string]*huma.Response{"200": {
		Description: "The request",
		Content: map[string]*huma.MediaType{
			"message/http": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}

	api.Register(s.api, op, s.request)
}

// request answers with a delivery as it was received.
func (s *service) request(ctx context.Context, in *DeliveryUID) (*requestOutput, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return nil, err
	}

	d, payload, err := s.delivery(ctx, f.UID, w.UID, in.Delivery)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, api.Problem("resource_not_found", "the payload of delivery %s is not stored", d.UID)
	}

	headers, body, err := s.Store.Request(ctx, f.UID, d.UID)
	if err != nil {
		return nil, err
	}

	text := bytes.NewBufferString("POST " + IngressURL("", w) + " HTTP/1.1\r\n")
	text.Write(headers)
	text.WriteString("\r\n")
	text.Write(body)
	return &requestOutput{
		ContentType: "message/http", ContentDisposition: `attachment; filename="` + d.UID + `.http"`,
		NoSniff:      "nosniff",
		Policy:       "default-src 'none'; sandbox",
		CacheControl: "private, no-store",
		Body:         text.Bytes(),
	}, nil
}

// listen opens the stream of a webhook's deliveries.
func (s *service) listen(ctx context.Context, in *listenInput) (*huma.StreamResponse, error) {
	f, w, err := s.webhook(ctx, in.WebhookUID)
	if err != nil {
		return nil, err
	}
	if w.Deleted != nil {
		return nil, api.Problem("resource_not_found", "webhook %q is deleted", w.Spec.Name)
	}

	l := &listener{
		service: s, factoryUID: f.UID, webhookUID: w.UID, sent: map[string]bool{},
		keepsHeaders: api.KeyOf(ctx).Role.Allows(state.RoleRunner),
	}
	if in.LastEventID != "" {
		if !state.ValidID(state.PrefixDelivery, in.LastEventID) {
			return nil, api.InvalidField("Last-Event-ID", "not an ID of an event of this stream")
		}
		l.resume(in.LastEventID)
	} else {
		l.after = state.DeliveryUIDAt(time.Now())
	}

	return s.api.StreamEvents(ctx, s.api.Bounds().DeliveryStreams, func(ctx context.Context, events *api.Events) {
		l.Events = events
		if err := l.follow(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("stream of deliveries ended", "webhook", w.UID, "error", err)
		}
	})
}

// listener writes each accepted delivery of a webhook once. Deliveries are not stored in the order of their
// UIDs, so it reads those younger than settled again.
type listener struct {
	*service
	*api.Events
	factoryUID, webhookUID string
	after                  string          // earlier deliveries are written or not requested
	sent                   map[string]bool // UIDs greater than after that are written
	keepsHeaders           bool            // the key may read them
}

const (
	settled        = 30 * time.Second // maximum time from the judgement of a delivery to its storage
	listenerPoll   = time.Second      // a notice may be lost
	listenerRenews = 15 * time.Second // the headers of deliveries are kept for a minute
)

// resume continues after the last event that a client received. It repeats deliveries that may have been
// stored late.
func (l *listener) resume(last string) {
	l.sent[last] = true
	l.after = min(last, state.DeliveryUIDAt(state.DeliveryTime(last).Add(-settled)))
}

// follow writes events until ctx ends.
func (l *listener) follow(ctx context.Context) error {
	notices, end := l.Store.Subscribe(64, notice.Delivery)
	defer end()

	l.keepHeaders(ctx)
	start := l.after
	if len(l.sent) > 0 {
		start = "" // a resumed stream
	}
	if err := l.Send("listening", start, struct{}{}); err != nil {
		return err
	}

	poll := time.NewTicker(listenerPoll)
	defer poll.Stop()

	renew := time.NewTicker(listenerRenews)
	defer renew.Stop()

	for {
		if err := l.catchUp(ctx); err != nil {
			return err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case n := <-notices:
				waiting = n.ID != l.webhookUID
			case <-poll.C:
				waiting = false
			case <-renew.C:
				l.keepHeaders(ctx)
				if err := l.Waiting(); err != nil {
					return err
				}
			}
		}
	}
}

// keepHeaders makes the server store headers of deliveries for another minute, if the listener may read
// them.
func (l *listener) keepHeaders(ctx context.Context) {
	if l.keepsHeaders {
		l.Store.Follow(l.webhookUID)
	}
}

// catchUp writes every stored delivery that is not written yet.
func (l *listener) catchUp(ctx context.Context) error {
	const page = 500
	old := state.DeliveryUIDAt(time.Now().Add(-settled))
	for cursor := l.after; ; {
		rows, err := l.Store.AcceptedAfter(ctx, l.factoryUID, l.webhookUID, cursor, page)
		if err != nil {
			return err
		}

		for _, d := range rows {
			cursor = d.UID
			if l.sent[d.UID] {
				continue
			}

			runs, err := l.Store.RunsOfDeliveries(ctx, d.UID)
			if err != nil {
				return err
			}
			if err := l.Send("delivery", d.UID, newDelivery(d, runs[d.UID])); err != nil {
				return err
			}
			if d.UID > old {
				l.sent[d.UID] = true
			}
		}

		if len(rows) < page {
			break
		}
	}

	l.after = max(l.after, old)
	maps.DeleteFunc(l.sent, func(uid string, _ bool) bool { return uid <= l.after })
	return nil
}
