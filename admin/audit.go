package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"millwright/api"
	"millwright/state"
	"millwright/state/audit"
)

// AuditEntry is a change in the audit log.
type AuditEntry struct {
	UID        string    `json:"uid" doc:"Identifier" example:"aud_0197a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"`
	At         time.Time `json:"at" doc:"Time of the change"`
	Actor      string    `json:"actor" doc:"Name of the API key, author of the revision, or server" example:"ada"`
	ActorKind  string    `json:"actor_kind" doc:"key or session (of the dashboard), server, source (a revision, whose author is not verified), console (a command on the server's machine), or another way to sign in" example:"key"`
	ActorUID   string    `json:"actor_uid" doc:"UID of the API key; empty for others"`
	Source     string    `json:"source" doc:"Address of the client; empty for a change that no request asked for" example:"192.0.2.7"`
	FactoryUID string    `json:"factory_uid" doc:"UID of the changed factory; empty for changes of the server"`
	Action     string    `json:"action" doc:"Kind of the change" example:"webhook.disable"`
	Subject    string    `json:"subject" doc:"UID or name of what changed"`
	Detail     string    `json:"detail" doc:"Further facts, without secrets"`
}

// ListAuditResponse is a page of the audit log, newest first.
type ListAuditResponse struct {
	Entries  []AuditEntry `json:"entries" nullable:"false" doc:"The changes, newest first"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

func (s *service) registerAudit() {
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(http.MethodGet, "/audit", "listAudit", state.RoleAdmin, "List the audit log"),
			"Each change is one entry; a change that failed has none.",
		),
		s.listAudit,
	)
}

func (s *service) listAudit(ctx context.Context, in *struct {
	PageQuery
	Actor   string    `query:"actor" maxLength:"200" doc:"Name or UID of the actor"`
	Action  string    `query:"action" pattern:"^[a-z_]{1,40}(\\.[a-z_]{1,40})?$" patternDescription:"an action, or its part before the dot" doc:"An action such as webhook.disable, or all of a kind such as webhook"`
	Factory string    `query:"factory_uid" maxLength:"64" doc:"UID of the factory"`
	After   time.Time `query:"after" doc:"Only changes at this time or later"`
	Before  time.Time `query:"before" doc:"Only changes before this time"`
},
) (ListAuditResponse, error) {
	after, err := in.after("audit")
	if err != nil {
		return ListAuditResponse{}, err
	}

	if in.Action != "" && !audit.Known(in.Action) {
		return ListAuditResponse{}, unknownAction(in.Action)
	}

	var last audit.Position
	if after != "" && json.Unmarshal([]byte(after), &last) != nil {
		return ListAuditResponse{}, api.InvalidField("cursor", "not a cursor of this list")
	}

	f := audit.Filter{
		Actor:      in.Actor,
		Action:     in.Action,
		FactoryUID: in.Factory,
		Since:      in.After,
		Until:      in.Before,
	}
	all, err := s.Store.Audit().List(ctx, f, last, in.Limit+1)
	if err != nil {
		return ListAuditResponse{}, err
	}

	rows, info := page(in.PageQuery, "audit", all, func(e audit.Entry) string {
		text, _ := json.Marshal(e.Position())
		return string(text)
	})

	out := ListAuditResponse{[]AuditEntry{}, info}
	for _, e := range rows {
		out.Entries = append(out.Entries, newAuditEntry(e))
	}

	return out, nil
}

// unknownAction returns the error for an action that no change has. It lists the actions of the kind, or all kinds.
func unknownAction(name string) error {
	kind, _, _ := strings.Cut(name, ".")
	if all := audit.Actions(kind); len(all) > 0 {
		known := strings.Join(all, ", ")
		return api.InvalidField("action", "unknown action %q; the actions of %s are %s", name, kind, known)
	}

	return api.InvalidField("action", "unknown action %q; the kinds are %s", name, strings.Join(audit.Kinds(), ", "))
}

func newAuditEntry(e audit.Entry) AuditEntry {
	return AuditEntry{
		UID:        e.UID,
		At:         e.At,
		Actor:      e.Actor.Name,
		ActorKind:  e.Actor.Kind,
		ActorUID:   e.Actor.UID,
		Source:     e.Actor.Source,
		FactoryUID: e.FactoryUID,
		Action:     e.Action,
		Subject:    e.Subject,
		Detail:     e.Detail,
	}
}
