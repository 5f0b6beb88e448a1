package dashboard

import (
	"fmt"
	"net/http"
	"net/url"

	"millwright/admin"
	"millwright/state/events"
)

type notificationsView struct {
	Notifications []admin.Notification
	Events        []admin.Event
	State         string // that the list shows; empty: all
	States        []events.State
	Where         place
	First, Next   string
}

// eventTones are the tones of the states of events.
var eventTones = map[string]string{"pending": "odd", "sent": "good", "dead": "bad", "dropped": "quiet"}

// notifications lists the notifications of a factory, and their events.
func (q *request) notifications() error {
	p, f, err := q.factoryPage("Notifications", "notifications")
	if err != nil {
		return err
	}

	path := "/factory/" + f.UID
	var list admin.ListNotificationsResponse
	if err := q.call(http.MethodGet, path+"/notifications?limit=500", nil, &list); err != nil {
		return err
	}

	asked := url.Values{"limit": {"50"}}
	for _, name := range []string{"state", "cursor"} {
		if value := q.FormValue(name); value != "" {
			asked.Set(name, value)
		}
	}
	var told admin.ListEventsResponse
	if err := q.call(http.MethodGet, path+"/events?"+asked.Encode(), nil, &told); err != nil {
		return err
	}

	v := notificationsView{
		Notifications: list.Notifications,
		Events:        told.Events,
		State:         q.FormValue("state"),
		States:        events.States(),
		Where:         placeOf(f, "notifications/<name>.yaml"),
	}
	here := "/factories/" + f.UID + "/notifications?state=" + url.QueryEscape(v.State)
	if asked.Get("cursor") != "" {
		v.First = here
	}
	if told.PageInfo.HasNextPage {
		v.Next = here + "&cursor=" + url.QueryEscape(told.PageInfo.NextCursor)
	}

	p.Live, p.Data = []string{"sync." + f.UID}, v
	return q.render("notifications", p)
}

// event shows an event with its attempts.
func (q *request) event() error {
	p, f, err := q.factoryPage("Event", "notifications")
	if err != nil {
		return err
	}

	var e admin.EventDetail
	path := "/factory/" + f.UID + "/events/" + url.PathEscape(q.param("event"))
	if err := q.call(http.MethodGet, path, nil, &e); err != nil {
		return err
	}

	p.Crumbs = append(p.Crumbs, crumb{"Notifications", "/factories/" + f.UID + "/notifications"})
	p.Live, p.Data = []string{"sync." + f.UID}, e
	return q.render("event", p)
}

func (q *request) testNotification() error {
	return q.tell("/notifications/"+url.PathEscape(q.param("notification"))+"/test", "/notifications", "tested")
}

func (q *request) replayDead() error {
	return q.tell("/notifications/"+url.PathEscape(q.param("notification"))+"/replay", "/notifications", "resent")
}

func (q *request) replayEvent() error {
	event := "/events/" + url.PathEscape(q.param("event"))
	return q.tell(event+"/replay", "/notifications"+event, "resent")
}

// tell makes a change at the API below a factory, and returns to a page of it with a message.
func (q *request) tell(change, to, said string) error {
	_, f, err := q.factoryPage("", "")
	if err != nil {
		return err
	}
	if err := q.call(http.MethodPost, "/factory/"+f.UID+change, nil, nil); err != nil {
		return err
	}
	return q.redirect("/factories/"+f.UID+to, said)
}

// eventFindings tell of the notifications that have dead events.
func (q *request) eventFindings() (all []finding, err error) {
	standings, err := q.Store.Events().Standings(q.Context())
	if err != nil {
		return nil, err
	}

	for _, s := range standings {
		if s.Dead == 0 || len(all) >= maxOutputFindings || !q.key.Reaches(s.FactoryUID) {
			continue
		}

		f, err := q.Store.Factory(q.Context(), s.FactoryUID)
		if err != nil {
			return nil, err
		}
		if f.Detached {
			continue
		}
		dead := count(s.Dead, "event is dead", "events are dead")
		all = append(all, finding{
			"bad",
			fmt.Sprintf("%s, of notification %s", dead, line(s.Notification)),
			"the receiver of factory " + line(f.Name) + " did not take them",
			"/factories/" + s.FactoryUID + "/notifications?state=dead",
			"See events",
		})
	}
	return all, nil
}
