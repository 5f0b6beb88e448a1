package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"millwright/api"
	"millwright/state"
	"millwright/state/events"
	"millwright/state/notice"
)

// Notification is where events of a factory are sent to.
type Notification struct {
	UID           string             `json:"uid" doc:"Identifier" example:"ntf_01h455vb4pex5vsknk084sn02q"`
	Name          string             `json:"name" doc:"Name, as its file"`
	Description   string             `json:"description,omitempty" doc:"What it is for"`
	URL           string             `json:"url,omitempty" doc:"The address of the receiver; absent if a secret holds it"`
	URLSecretName string             `json:"url_secret_name,omitempty" doc:"The team secret that holds the address"`
	SecretName    string             `json:"secret_name,omitempty" doc:"The team secret that signs the events"`
	Format        string             `json:"format" enum:"standard,slack" doc:"Signed JSON by Standard Webhooks, or a message"`
	Events        []string           `json:"events" nullable:"false" doc:"The events that it asks for"`
	Filter        NotificationFilter `json:"filter" doc:"Narrows the events of runs"`
	Enabled       bool               `json:"enabled" doc:"Whether it gets events"`
	Waiting       int                `json:"waiting" doc:"Number of events that wait for it"`
	Dead          int                `json:"dead" doc:"Number of its events that were given up"`
	File          string             `json:"file" doc:"The definition file" example:"notifications/ops.yaml"`
	Line          int                `json:"line" doc:"Line of the first key in the file, from 1"`
}

// NotificationFilter narrows the events of runs.
type NotificationFilter struct {
	Automation []string `json:"automation" nullable:"false" doc:"Only runs of these automations; empty: of all"`
	State      []string `json:"state" nullable:"false" doc:"Only runs that ended in these states; empty: in any"`
}

// ListNotificationsResponse is a page of notifications, by name.
type ListNotificationsResponse struct {
	Notifications []Notification `json:"notifications" nullable:"false" doc:"The applied notifications, by name"`
	PageInfo      api.PageInfo   `json:"page_info" doc:"Whether there is another page"`
}

// Event is an event for the receiver of a notification.
type Event struct {
	EventUID      string     `json:"event_uid" doc:"Identifier, which the receiver gets as webhook-id" example:"evt_01h455vb4pex5vsknk084sn02q"`
	Type          string     `json:"type" doc:"What happened" example:"run.failed"`
	Notification  string     `json:"notification" doc:"Name of the notification"`
	RunID         string     `json:"run_id,omitempty" doc:"The run that it is about"`
	State         string     `json:"state" enum:"pending,sent,dead,dropped" doc:"pending: it waits for its next attempt. sent: the receiver answered 2xx. dead: it was given up. dropped: its notification was deleted or disabled"`
	Attempts      int        `json:"attempts" doc:"Number of attempts"`
	Reason        string     `json:"reason,omitempty" doc:"Why it waits, is dead or was dropped"`
	NextAttemptAt *time.Time `json:"next_attempt_at,omitempty" doc:"Time of the next attempt; only for a pending event"`
	CreatedAt     time.Time  `json:"created_at" doc:"When it happened"`
	UpdatedAt     time.Time  `json:"updated_at" doc:"Time of the last change"`
}

// ListEventsResponse is a page of events.
type ListEventsResponse struct {
	Events   []Event      `json:"events" nullable:"false" doc:"The events, newest first"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// EventDetail is an event with its data and attempts.
type EventDetail struct {
	Event
	Data        json.RawMessage `json:"data" doc:"What it tells, without links"`
	AttemptList []EventAttempt  `json:"attempt_list" nullable:"false" doc:"The last 10 attempts, oldest first"`
}

// EventAttempt is one attempt to send an event.
type EventAttempt struct {
	Number         int       `json:"number" doc:"From 1"`
	At             time.Time `json:"at" doc:"When it began"`
	DurationMillis int64     `json:"duration_millis" doc:"How long it took"`
	Status         int       `json:"status,omitempty" doc:"Status of the answer; absent without one"`
	Error          string    `json:"error,omitempty" doc:"Why it failed"`
	Answer         string    `json:"answer,omitempty" doc:"The first 1 KiB of the answer, for keys of role admin"`
}

// ReplayEventsResponse counts the events that are sent again.
type ReplayEventsResponse struct {
	Replayed int `json:"replayed" doc:"Number of events"`
}

// notificationPath names a notification.
type notificationPath struct {
	FactoryUID
	Notification string `path:"notification" maxLength:"64" doc:"Name of the notification" example:"ops"`
}

// eventPath names an event.
type eventPath struct {
	FactoryUID
	Event string `path:"event_uid" doc:"Identifier of the event" example:"evt_01h455vb4pex5vsknk084sn02q"`
}

func (s *service) registerNotifications() {
	const path = "/factory/{uid}/notifications"
	api.Handle(s.api, api.Operation(http.MethodGet, path, "listNotifications", state.RoleViewer,
		"List a factory's notifications"), s.listNotifications)
	api.Handle(s.api, api.Also(api.Explained(
		api.Operation(http.MethodPost, path+"/{notification}/test", "testNotification", state.RoleRunner,
			"Send a test event"),
		"The server sends it as it sends all others. 409 if the notification is disabled.",
	), http.StatusConflict), s.testNotification)
	api.Handle(s.api, api.Operation(http.MethodPost, path+"/{notification}/replay", "replayDeadEvents",
		state.RoleRunner, "Send the dead events of a notification again"), s.replayDead)

	const list = "/factory/{uid}/events"
	api.Handle(s.api, api.Operation(http.MethodGet, list, "listEvents", state.RoleViewer,
		"List a factory's events for receivers outside, newest first"), s.listEvents)
	api.Handle(s.api, api.Operation(http.MethodGet, list+"/{event_uid}", "getEvent", state.RoleViewer,
		"Get an event with its attempts"), s.getEvent)
	api.Handle(s.api, api.Also(api.Explained(
		api.Operation(http.MethodPost, list+"/{event_uid}/replay", "replayEvent", state.RoleRunner,
			"Send an event again"),
		"409 unless it is dead or was sent.",
	), http.StatusConflict), s.replayEvent)
}

func (s *service) listNotifications(
	ctx context.Context,
	in *struct {
		FactoryUID
		PageQuery
	},
) (ListNotificationsResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ListNotificationsResponse{}, err
	}
	cur, err := s.Store.Current(ctx, f.UID)
	if err != nil {
		return ListNotificationsResponse{}, err
	}
	standings, err := s.Store.Events().Standings(ctx)
	if err != nil {
		return ListNotificationsResponse{}, err
	}

	all := []Notification{}
	for _, n := range cur.Tree.Notifications {
		item := Notification{
			UID:           cur.UIDs[state.ResourceKey("notification", n.Name)],
			Name:          n.Name,
			Description:   n.Description,
			URL:           n.URL,
			URLSecretName: n.URLSecretName,
			SecretName:    n.SecretName,
			Format:        n.Format,
			Events:        append([]string{}, n.Events...),
			Filter: NotificationFilter{
				append([]string{}, n.Filter.Automation...),
				append([]string{}, n.Filter.State...),
			},
			Enabled: n.Enabled,
			File:    n.Path,
			Line:    n.Line,
		}
		for _, st := range standings {
			if st.FactoryUID == f.UID && st.Notification == n.Name {
				item.Waiting, item.Dead = st.Waiting, st.Dead
			}
		}
		all = append(all, item)
	}

	name := func(n Notification) string { return n.Name }
	rows, info, err := paginate(in.PageQuery, "notifications", all, name, false)
	return ListNotificationsResponse{rows, info}, err
}

func newEvent(e events.Event) Event {
	out := Event{
		EventUID:     e.UID,
		Type:         e.Type,
		Notification: e.Notification,
		RunID:        e.RunID,
		State:        string(e.State),
		Attempts:     e.Attempts,
		Reason:       e.Reason,
		CreatedAt:    e.Created,
		UpdatedAt:    e.Updated,
	}
	if e.State == events.Pending {
		out.NextAttemptAt = &e.NextAt
	}
	return out
}

func (s *service) listEvents(
	ctx context.Context,
	in *struct {
		FactoryUID
		PageQuery
		State        string `query:"state" enum:",pending,sent,dead,dropped" doc:"Only events in this state"`
		Notification string `query:"notification" maxLength:"64" doc:"Only events of the notification of this name"`
	},
) (ListEventsResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ListEventsResponse{}, err
	}
	after, err := in.after("events")
	if err != nil {
		return ListEventsResponse{}, err
	}

	filter := events.Filter{State: events.State(in.State), Notification: in.Notification}
	all, err := s.Store.Events().List(ctx, f.UID, filter, after, in.Limit+1)
	if err != nil {
		return ListEventsResponse{}, err
	}

	rows, info := page(in.PageQuery, "events", all, func(e events.Event) string { return e.UID })
	out := ListEventsResponse{[]Event{}, info}
	for _, e := range rows {
		out.Events = append(out.Events, newEvent(e))
	}
	return out, nil
}

func (s *service) getEvent(ctx context.Context, in *eventPath) (EventDetail, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return EventDetail{}, err
	}
	e, err := s.Store.Events().Event(ctx, f.UID, in.Event)
	if err != nil {
		return EventDetail{}, eventError(err, in.Event, e)
	}
	attempts, err := s.Store.Events().Attempts(ctx, e.UID)
	if err != nil {
		return EventDetail{}, err
	}

	out := EventDetail{Event: newEvent(e), Data: e.Data, AttemptList: []EventAttempt{}}
	for _, a := range attempts {
		item := EventAttempt{
			Number:         a.Number,
			At:             a.At,
			DurationMillis: a.Took.Milliseconds(),
			Status:         a.Status,
			Error:          a.Error,
		}
		if api.KeyOf(ctx).Role == state.RoleAdmin {
			item.Answer = a.Answer
		}
		out.AttemptList = append(out.AttemptList, item)
	}
	return out, nil
}

// eventError returns the problem of an event that cannot be read or changed.
func eventError(err error, uid string, e events.Event) error {
	switch {
	case errors.Is(err, events.ErrNotFound):
		return api.Problem("resource_not_found", "the factory has no event %q", uid)
	case errors.Is(err, events.ErrConflict):
		return api.Problem("conflict", "event %s is %s: only dead and sent events are replayed", uid, e.State)
	}
	return err
}

func (s *service) replayEvent(ctx context.Context, in *eventPath) (Event, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return Event{}, err
	}
	e, err := s.Store.Events().Replay(ctx, f.UID, in.Event)
	if err != nil {
		return Event{}, eventError(err, in.Event, e)
	}

	s.Store.Notify(notice.Event, e.UID)
	return newEvent(e), nil
}

// known reports whether a factory has a notification, or events of one that it had.
func (s *service) known(ctx context.Context, factoryUID, name string) error {
	cur, err := s.Store.Current(ctx, factoryUID)
	if err != nil {
		return err
	}
	for _, n := range cur.Tree.Notifications {
		if n.Name == name {
			return nil
		}
	}

	had, err := s.Store.Events().List(ctx, factoryUID, events.Filter{Notification: name}, "", 1)
	if err == nil && len(had) == 0 {
		err = api.Problem("resource_not_found", "the factory has no notification %q", name)
	}
	return err
}

func (s *service) replayDead(ctx context.Context, in *notificationPath) (ReplayEventsResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ReplayEventsResponse{}, err
	}
	if err := s.known(ctx, f.UID, in.Notification); err != nil {
		return ReplayEventsResponse{}, err
	}

	n, err := s.Store.Events().ReplayDead(ctx, f.UID, in.Notification)
	if err == nil {
		s.Store.Notify(notice.Event, f.UID)
	}
	return ReplayEventsResponse{n}, err
}

func (s *service) testNotification(ctx context.Context, in *notificationPath) (Event, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return Event{}, err
	}

	e, err := s.Store.Events().Ask(ctx, state.NewID(state.PrefixEvent), f.UID, in.Notification)
	switch {
	case errors.Is(err, events.ErrNotFound):
		return Event{}, api.Problem("resource_not_found", "the factory has no notification %q", in.Notification)
	case errors.Is(err, events.ErrConflict):
		return Event{}, api.Problem("conflict", "notification %q is disabled", in.Notification)
	case err != nil:
		return Event{}, err
	}

	s.Store.Notify(notice.Event, e.UID)
	return newEvent(e), nil
}
