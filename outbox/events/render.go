package events

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"millwright/schema"
	"millwright/state/events"
)

// payload is an event as a receiver gets it.
type payload struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // of what happened
	Data      data      `json:"data"`
}

type data struct {
	events.Data
	Links map[string]string `json:"links,omitempty"`
}

// render returns the body of an event in the format of its notification.
func (s *Sender) render(e events.Event, n schema.Notification) ([]byte, error) {
	p := payload{Type: e.Type, Timestamp: e.Created}
	if err := json.Unmarshal(e.Data, &p.Data.Data); err != nil {
		return nil, fmt.Errorf("the event cannot be read as it is stored: %w", err)
	}

	p.Data.Links = s.links(p.Data.Data)
	if n.Format != schema.FormatSlack {
		return json.Marshal(p)
	}
	return json.Marshal(map[string]any{
		"text":         message(p),
		"mrkdwn":       false,
		"link_names":   false,
		"unfurl_links": false,
		"unfurl_media": false,
	})
}

// links returns the addresses of what an event is about; none without a public URL.
func (s *Sender) links(d events.Data) map[string]string {
	if s.cfg.PublicURL == "" {
		return nil
	}

	factory := s.cfg.PublicURL + "/factories/" + url.PathEscape(d.Factory.UID)
	links := map[string]string{"factory": factory}
	switch {
	case d.Run != nil:
		id := url.PathEscape(d.Run.RunID)
		links["page"] = s.cfg.PublicURL + "/runs/" + id
		links["api"] = s.cfg.PublicURL + "/api/v1/agent/runs/" + id
	case d.Apply != nil:
		links["page"] = factory + "/history"
	default:
		links["page"] = factory
	}
	return links
}

// said are the sentences of the types of events, with the name of what they are about.
var said = map[string]string{
	schema.EventRunSucceeded:   "%s succeeded",
	schema.EventRunFailed:      "%s failed",
	schema.EventRunError:       "%s ended with an error of the platform",
	schema.EventRunBlocked:     "%s waits for an answer",
	schema.EventRunCancelled:   "%s was cancelled",
	schema.EventOutputFailed:   "An output of %s failed",
	schema.EventFactoryRefused: "%s refused a definition",
	schema.EventFactoryApplied: "%s applied a definition",
	schema.EventBudgetExceeded: "A budget of %s is spent",
	events.Test:                "%s sends a test event",
}

// message returns an event as text for people.
func message(p payload) string {
	d := p.Data
	about := "Factory " + d.Factory.Name
	if d.Run != nil {
		about = "A run of factory " + d.Factory.Name
		if d.Run.Automation != nil {
			about = fmt.Sprintf("A run of %s (factory %s)", d.Run.Automation.Name, d.Factory.Name)
		}
		if p.Type == schema.EventOutputFailed || p.Type == schema.EventBudgetExceeded {
			about = strings.Replace(about, "A run", "a run", 1)
		}
	} else if p.Type == schema.EventBudgetExceeded {
		about = "factory " + d.Factory.Name
	}

	lines := []string{fmt.Sprintf(said[p.Type], about)}
	if r := d.Run; r != nil {
		lines = append(lines, r.Title, r.ErrorCode)
		for _, a := range r.Artifacts {
			if a.Type == "PULL_REQUEST" {
				lines = append(lines, a.Path)
			}
		}
	}
	if d.Output != nil {
		lines = append(lines, d.Output.Kind+": "+d.Output.Reason)
	}
	if d.Budget != nil {
		lines = append(lines, d.Budget.Text)
	}
	if a := d.Apply; a != nil {
		lines = append(lines, strings.TrimSpace(a.Revision+" "+a.Subject))
		for i, problem := range a.Problems {
			if i < 3 {
				lines = append(lines, fmt.Sprintf("%s:%d: %s", problem.Path, problem.Line, problem.Message))
			}
		}
		if more := a.Errors - 3; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more", more))
		}
	}

	var text strings.Builder
	for _, line := range append(lines, d.Links["page"]) {
		if line = plain(line); line != "" {
			text.WriteString(line + "\n")
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// escapes keeps text from being markup and from mentioning anybody: the invisible space ends a mention, also for
// receivers that read messages as Slack does.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b")

// plain returns a text as one line of a message.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
	return escapes.Replace(strings.TrimSpace(text))
}
