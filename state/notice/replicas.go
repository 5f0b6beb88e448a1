package notice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is the PostgreSQL notification channel of a state.
const channel = "millwright"

const (
	// maxID is how long the ID of a notice for other replicas may be, in bytes: PostgreSQL's limit of a
	// notification, less our own words.
	maxID = 7500
	// maxSent is how many notices one statement sends.
	maxSent = 1000
	// reconnectPause is the pause between attempts to open a lost session again.
	reconnectPause = 500 * time.Millisecond
)

// Broadcast hands a notice to the other replicas, and not to this process. It returns before they have it.
// Two equal notices may arrive as one.
func (b *Bus) Broadcast(n Notice) error {
	if !b.db.Postgres() {
		return nil
	}
	if len(n.ID) > maxID {
		return fmt.Errorf("a notice of %d bytes is too long", len(n.ID))
	}

	select {
	case b.outgoing <- n:
		return nil
	default:
		return errors.New("too many notices wait")
	}
}

// Send sends notices to the other replicas until ctx ends, all waiting ones in one statement.
func (b *Bus) Send(ctx context.Context) {
	for {
		var texts []string
		select {
		case <-ctx.Done():
			return
		case n := <-b.outgoing:
			texts = append(texts, b.text(n))
		}

		for more := true; more && len(texts) < maxSent; {
			select {
			case n := <-b.outgoing:
				texts = append(texts, b.text(n))
			default:
				more = false
			}
		}

		err := b.db.Exec(ctx, `SELECT pg_notify($1, t) FROM unnest($2::text[]) AS t`, channel, texts)
		if err != nil && ctx.Err() == nil {
			b.log.Debug("notify", "notices", len(texts), "error", err)
		}
	}
}

func (b *Bus) text(n Notice) string { return b.instance + " " + string(n.Topic) + " " + n.ID }

// Receive hands the notices of other replicas to this process until ctx ends. conn is a session in which the
// state is used; when it breaks another one is opened, and resumed is asked whether this process may go on:
// it may not once it has had the database refuse changes.
func (b *Bus) Receive(ctx context.Context, conn *pgx.Conn, resumed func(context.Context) error) {
	for {
		err := b.receive(ctx, conn)
		if ctx.Err() != nil {
			return
		}

		b.log.Warn("listening for notices of other replicas: trying again", "error", err)
		if conn = b.reconnect(ctx, resumed); conn == nil {
			return
		}
	}
}

// reconnect opens another session as soon as it can be had; nil when this process may not go on.
func (b *Bus) reconnect(ctx context.Context, resumed func(context.Context) error) *pgx.Conn {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectPause):
		}

		conn, err := b.db.Use(ctx)
		if err != nil {
			continue
		}
		if err := resumed(ctx); err == nil {
			return conn
		}

		conn.Close(context.WithoutCancel(ctx))
		if b.db.Refused() != nil {
			return nil
		}
	}
}

// receive hands on notices until the session ends.
func (b *Bus) receive(ctx context.Context, conn *pgx.Conn) error {
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}

	b.Publish(Notice{Topic: Routing}, Notice{Topic: Queued}) // whatever was said meanwhile
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}

		from, what, _ := strings.Cut(n.Payload, " ")
		topic, id, _ := strings.Cut(what, " ")
		if from == b.instance {
			continue
		}
		if Topic(topic) == Follow {
			b.followed.note(id)
		}

		b.Publish(Notice{Topic: Topic(topic), ID: id})
	}
}

// Follow marks the deliveries of a webhook as followed: for a minute their headers are kept with their
// payloads. It takes effect here before it returns, and on other replicas a moment later.
func (b *Bus) Follow(webhookUID string) {
	b.followed.note(webhookUID)
	b.Notify(Follow, webhookUID)
}

// Notify publishes a notice here and, a moment later, on every other replica.
func (b *Bus) Notify(topic Topic, id string) {
	n := Notice{Topic: topic, ID: id}
	b.Publish(n)
	_ = b.Broadcast(n) // a hint; the replicas' own polling makes it good
}
