package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/state"
	"millwright/state/notice"
)

const (
	maxTopics   = 32                     // of one stream
	streamPause = 250 * time.Millisecond // changes within it are told as one
	streamWrite = 15 * time.Second       // to hand a line to the browser
)

// topicsOf reads the topics of a stream: "delivery.UID", or "delivery" for all deliveries.
func topicsOf(texts []string) (topics []notice.Topic, wanted map[notice.Notice]bool, err error) {
	wanted = map[notice.Notice]bool{}
	seen := map[notice.Topic]bool{}
	if len(texts) == 0 || len(texts) > maxTopics {
		return nil, nil, api.InvalidField("on", "give 1 to %d topics", maxTopics)
	}

	for _, text := range texts {
		name, id, _ := strings.Cut(text, ".")
		topic := notice.Topic(name)
		switch topic {
		case notice.Delivery, notice.Run, notice.Sync, notice.Secret, notice.Check:
		default:
			return nil, nil, api.InvalidField("on", "there is no topic %q", clip(40, name))
		}

		wanted[notice.Notice{Topic: topic, ID: id}] = true
		if !seen[topic] {
			seen[topic] = true
			topics = append(topics, topic)
		}
	}

	return topics, wanted, nil
}

// stream notifies a page of changes by server-sent events; the page then loads itself again. The stream ends
// when the browser goes away, the session ends, or the server stops.
func (q *request) stream() error {
	topics, wanted, err := topicsOf(q.URL.Query()["on"])
	if err != nil {
		return err
	}

	streams := q.API.Bounds().PageStreams.Hold(q.key.UID)
	defer streams.Release()

	if !streams.Grow(1) {
		return api.Problem("resource_unavailable", "too many pages are being watched").WithRetryAfter(30)
	}

	notices, end := q.Store.Subscribe(64, topics...)
	defer end()

	out := http.NewResponseController(q.w)
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no")
	send := func(text string) error {
		if err := ignoreUnsupported(out.SetWriteDeadline(time.Now().Add(streamWrite))); err != nil {
			return err
		}
		if _, err := fmt.Fprint(q.w, text, "\n\n"); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}

		return ignoreUnsupported(
			out.SetWriteDeadline(time.Time{}),
		) // over HTTP/2 it would end the stream, though nobody writes
	}
	if send("retry: 3000\n: watching") != nil {
		return nil
	}

	check := time.NewTicker(q.LiveCheck)
	defer check.Stop()

	pause := time.NewTimer(0)
	<-pause.C
	defer pause.Stop()

	waiting := false
	for {
		select {
		case <-q.Context().Done():
			return nil
		case <-q.Done:
			return nil
		case n := <-notices:
			if !waiting && (wanted[n] || wanted[notice.Notice{Topic: n.Topic}]) && q.concerns(n) {
				waiting = true
				pause.Reset(streamPause)
			}
		case <-pause.C:
			waiting = false
			if send("event: changed\ndata: -") != nil {
				return nil
			}
		case <-check.C:
			text := ": still here"
			_, err := q.Store.SessionKey(q.Context(), q.session)
			if errors.Is(err, state.ErrNotFound) {
				text = "event: ended\ndata: -"
			}
			if send(text) != nil || errors.Is(err, state.ErrNotFound) {
				return nil
			}
		}
	}
}

// ignoreUnsupported returns err, or nil when it says that there is no connection to set a deadline of.
func ignoreUnsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
