package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema"
	"millwright/state"
	"millwright/state/registrations"
)

// Factory is a configured factory with the state of its definition.
type Factory struct {
	UID          string                `json:"uid" doc:"Identifier" example:"fac_01h455vb4pex5vsknk084sn02q"`
	Name         string                `json:"name" doc:"Name in the server's settings, which identifies the factory"`
	DisplayName  string                `json:"display_name,omitempty" doc:"name of factory.yaml, for display only"`
	Alias        string                `json:"alias" doc:"alias of factory.yaml, or empty"`
	Description  string                `json:"description" doc:"description of factory.yaml, or empty"`
	CreatedAt    time.Time             `json:"created_at" doc:"Time at which the factory was first configured"`
	UpdatedAt    time.Time             `json:"updated_at" doc:"Time of the last change of its settings or factory.yaml"`
	Repositories []Repository          `json:"repositories" nullable:"false" doc:"repositories of factory.yaml"`
	Source       FactorySource         `json:"source" doc:"Source of the definition"`
	Sync         FactorySync           `json:"sync" doc:"State of the definition"`
	Agents       []FactoryAgent        `json:"agents" nullable:"false" doc:"The agents of the applied definition, by name"`
	Counts       FactoryCounts         `json:"counts" doc:"Number of resources in the applied definition"`
	Suspended    bool                  `json:"suspended" doc:"Whether the factory does not follow its source: its settings suspend it, or it was rolled back"`
	Rollback     *FactoryRollback      `json:"rollback,omitempty" doc:"Since a rollback; else absent"`
	Detached     bool                  `json:"detached" doc:"Whether the settings no longer name the factory; its webhooks answer 404"`
	Conditions   []state.Condition     `json:"conditions" nullable:"false" doc:"Conditions Ready, Reconciling and Stalled"`
	Recipient    string                `json:"recipient" doc:"Public key of age: millwright secret seal encrypts secrets for the definition to it" example:"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kudxr5n8qvg6lk9"`
	Unregistered []UnregisteredWebhook `json:"unregistered" nullable:"false" doc:"Webhooks that a forge does not have as their files state"`
	FactorySettings
}

// UnregisteredWebhook is a webhook that a forge does not have as its file states.
type UnregisteredWebhook struct {
	Webhook    string `json:"webhook" doc:"Name of the webhook"`
	Repository string `json:"repository" doc:"The repository at the forge" example:"acme/shop"`
	State      string `json:"state" enum:"pending,drifted,failed,removing" doc:"As in the webhook's registration"`
	Reason     string `json:"reason" doc:"The reason; empty before the first attempt"`
}

// FactoryRollback says that a factory serves an earlier revision until it is resumed.
type FactoryRollback struct {
	By string    `json:"by" doc:"Name of the API key that rolled back"`
	At time.Time `json:"at" doc:"Time of the rollback"`
}

// Repository names a source repository.
type Repository struct {
	Owner string `json:"owner" doc:"Its owner"`
	Name  string `json:"name" doc:"Name"`
	Repo  string `json:"repo" doc:"The same as name"`
}

// FactorySource is the source of a definition.
type FactorySource struct {
	Kind   string `json:"kind" enum:"git,dir,managed" doc:"A git branch, a directory, or the server itself"`
	URL    string `json:"url" doc:"Address of the repository, without credentials; empty unless kind is git"`
	Branch string `json:"branch" doc:"The watched branch; empty unless kind is git"`
	Path   string `json:"path" doc:"The directory, or the path in the repository"`
}

// FactorySync is the state of a definition.
type FactorySync struct {
	State             string           `json:"state" enum:"pending,applied,refused,failed" doc:"Outcome of the last attempt to apply; after refused and failed, the last applied definition stays in force"`
	AttemptedRevision string           `json:"attempted_revision" doc:"The revision of the last attempt; empty before the first attempt"`
	AppliedRevision   string           `json:"applied_revision" doc:"The revision in force; empty before the first apply"`
	AppliedSigner     string           `json:"applied_signer" doc:"Name and key of the signer of the revision in force, if the source verifies signatures; else empty"`
	LastAppliedAt     *time.Time       `json:"last_applied_at" doc:"Time of the last apply"`
	LastAttemptedAt   *time.Time       `json:"last_attempted_at" doc:"Time at which the last attempt ended"`
	Problems          []schema.Problem `json:"problems" nullable:"false" doc:"Problems that the last attempt found"`
	Message           string           `json:"message" doc:"Reason why the last attempt was refused or failed, in one line; else empty"`
}

// FactoryAgent is an agent of a factory.
type FactoryAgent struct {
	UID  string `json:"uid" doc:"Identifier, for agent_identity_uid of a run"`
	Name string `json:"name" doc:"Name"`
	Type string `json:"type" doc:"agentType of the agent" example:"FOREMAN"`
}

// FactoryCounts are the numbers of resources in a definition.
type FactoryCounts struct {
	Webhooks    int `json:"webhooks" doc:"Webhooks, disabled ones included"`
	Automations int `json:"automations" doc:"Automations, disabled ones included"`
	Agents      int `json:"agents" doc:"Agents"`
	Runners     int `json:"runners" doc:"Runners"`
	Skills      int `json:"skills" doc:"Skills"`
}

// ListFactoriesResponse is a page of factories, by name.
type ListFactoriesResponse struct {
	Factories []Factory    `json:"factories" nullable:"false" doc:"The factories, by name"`
	PageInfo  api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

// FactoryUID is the path parameter that names a factory.
type FactoryUID struct {
	Factory string `path:"uid" doc:"UID of the factory" example:"fac_01h455vb4pex5vsknk084sn02q"`
}

func (s *service) registerFactories() {
	api.Handle(
		s.api,
		api.Filtered(
			api.Operation(http.MethodGet, "/factory", "listFactories", state.RolePlanner, "List the factories"),
		),
		s.listFactories,
	)
	api.Handle(
		s.api,
		api.Operation(http.MethodGet, "/factory/{uid}", "getFactory", state.RolePlanner, "Get a factory"),
		s.getFactory,
	)
	api.Handle(s.api, api.Operation(http.MethodGet, "/factory/{uid}/syncs", "listSyncs", state.RoleViewer,
		"List the attempts to apply a factory's definition, newest first"), s.listSyncs)
	api.Handle(s.api, api.Also(api.Operation(http.MethodPost, "/factory/{uid}/sync", "syncFactory", state.RoleAdmin,
		"Apply the head of a factory's source, and wait until it is applied or refused"),
		http.StatusConflict, http.StatusUnprocessableEntity), s.sync)
}

// factory returns the factory of a UID, detached or not. It does not accept names.
func (s *service) factory(ctx context.Context, uid string) (state.Factory, error) {
	if !state.ValidID(state.PrefixFactory, uid) {
		return state.Factory{}, api.Problem("resource_not_found", "factory %q does not exist", uid)
	}
	return s.Store.Factory(ctx, uid)
}

func (s *service) listFactories(ctx context.Context, in *struct {
	PageQuery
	Search          string `query:"search" maxLength:"200" doc:"Part of the name or alias, in any case"`
	IncludeDetached bool   `query:"include_detached" doc:"Include detached factories"`
},
) (ListFactoriesResponse, error) {
	all, err := s.Store.Factories(ctx)
	if err != nil {
		return ListFactoriesResponse{}, err
	}

	search := strings.ToLower(in.Search)
	all = slices.DeleteFunc(all, func(f state.Factory) bool {
		alias := ""
		if f.Spec != nil {
			alias = f.Spec.Alias
		}

		return !api.KeyOf(ctx).Reaches(f.UID) || f.Detached && !in.IncludeDetached ||
			!strings.Contains(strings.ToLower(f.Name), search) && !strings.Contains(strings.ToLower(alias), search)
	})

	slices.SortFunc(all, func(a, b state.Factory) int { return cmp.Compare(a.Name, b.Name) })
	rows, info, err := paginate(in.PageQuery, "factories", all, func(f state.Factory) string { return f.Name }, false)
	out := ListFactoriesResponse{[]Factory{}, info}
	for _, f := range rows {
		described, err := s.describeFactory(ctx, f.UID)
		if err != nil {
			return ListFactoriesResponse{}, err
		}

		out.Factories = append(out.Factories, described)
	}

	return out, err
}

func (s *service) getFactory(ctx context.Context, in *FactoryUID) (Factory, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return Factory{}, err
	}
	return s.describeFactory(ctx, f.UID)
}

func (s *service) describeFactory(ctx context.Context, uid string) (Factory, error) {
	cur, err := s.Store.Current(ctx, uid)
	f := cur.Factory
	if errors.Is(err, state.ErrUnreadable) { // one bad factory must not hide the others
		f.SyncState, f.Message, err = state.SyncFailed, err.Error(), nil
	}
	if err != nil {
		return Factory{}, err
	}

	out := Factory{
		UID: f.UID, Name: f.Name, CreatedAt: f.Created, UpdatedAt: f.Updated,
		Repositories: []Repository{}, Agents: []FactoryAgent{},
		Source: newSource(f.Source),
		Sync: FactorySync{
			State: string(f.SyncState), AttemptedRevision: f.Attempted.ID, AppliedRevision: f.Applied.ID,
			AppliedSigner:   f.Applied.Signer,
			LastAppliedAt:   f.LastApplied,
			LastAttemptedAt: f.LastAttempted,
			Problems:        problems(f.Problems),
			Message:         f.Message,
		},
		Counts: FactoryCounts{
			Webhooks: len(cur.Webhooks), Automations: len(cur.Tree.Automations), Agents: len(cur.Tree.Agents),
			Runners: len(cur.Tree.Runners), Skills: len(cur.Tree.Skills),
		},
		Suspended: f.Suspended || f.Pin != nil, Detached: f.Detached, Conditions: f.Conditions(),
		FactorySettings: factorySettings(f), Recipient: f.Recipient,
	}

	if f.Pin != nil {
		out.Rollback = &FactoryRollback{By: f.Pin.By, At: f.Pin.At}
	}
	if f.Spec != nil {
		out.DisplayName, out.Alias, out.Description = f.Spec.Name, f.Spec.Alias, f.Spec.Description
		for _, r := range f.Spec.Repositories {
			out.Repositories = append(out.Repositories, Repository{r.Owner, r.Name, r.Name})
		}
	}

	if out.Unregistered, err = s.unregistered(ctx, uid); err != nil {
		return Factory{}, err
	}

	for _, a := range cur.Tree.Agents {
		out.Agents = append(
			out.Agents,
			FactoryAgent{cur.UIDs[state.ResourceKey("agent", a.Name)], a.Name, a.AgentType},
		)
	}

	return out, nil
}

func (s *service) unregistered(ctx context.Context, uid string) ([]UnregisteredWebhook, error) {
	out := []UnregisteredWebhook{}
	all, err := s.Store.Registrations().Of(ctx, uid)
	if err != nil || len(all) == 0 {
		return out, err
	}

	hooks, err := s.Store.Webhooks(ctx, uid, true)
	if err != nil {
		return out, err
	}

	names := map[string]string{}
	for _, w := range hooks {
		names[w.UID] = w.Spec.Name
	}

	for _, r := range all {
		if r.State != registrations.Registered {
			out = append(out, UnregisteredWebhook{names[r.WebhookUID], r.Repository, string(r.State), r.Reason})
		}
	}
	return out, nil
}

func newSource(s state.Source) FactorySource {
	return FactorySource{s.Kind, WithoutCredentials(s.URL), s.Branch, s.Path}
}

// problems returns list, never nil.
func problems(list []schema.Problem) []schema.Problem {
	if list == nil {
		return []schema.Problem{}
	}
	return list
}

// Sync is one attempt to make the state equal to a revision.
type Sync struct {
	StartedAt   time.Time        `json:"started_at" doc:"Time at which it began"`
	FinishedAt  time.Time        `json:"finished_at" doc:"Time of the end"`
	Source      FactorySource    `json:"source" doc:"Source of the definition"`
	Outcome     string           `json:"outcome" enum:"applied,refused,unchanged,failed,suspended" doc:"Outcome: refused if the definition has errors, failed if the source is unreadable, suspended if it is valid and the factory was rolled back"`
	Revision    string           `json:"revision" doc:"A git commit, sha256:… of a directory's content, or r12 of a managed factory; empty if the source is unreadable"`
	Author      string           `json:"author" doc:"Author of the commit, or name of the API key that made the edit"`
	Signer      string           `json:"signer" doc:"Name and key of the commit's signer, if the source verifies signatures; else empty"`
	Subject     string           `json:"subject" doc:"First line of the commit message, or summary of the edit"`
	CommittedAt *time.Time       `json:"committed_at" doc:"Time of the commit or edit"`
	Counts      SyncCounts       `json:"counts" doc:"Number of changed resources"`
	Problems    []schema.Problem `json:"problems" nullable:"false" doc:"Problems in the definition"`
	Message     string           `json:"message" doc:"Reason why it was refused or failed, in one line; else empty"`
}

// SyncCounts are the numbers of resources that an attempt created, updated, deleted and left unchanged.
type SyncCounts struct {
	Created   int `json:"created" doc:"Created resources"`
	Updated   int `json:"updated" doc:"Updated resources"`
	Deleted   int `json:"deleted" doc:"Deleted resources"`
	Unchanged int `json:"unchanged" doc:"Unchanged resources"`
	Secrets   int `json:"secrets" doc:"Webhooks with a new value of their secret"`
}

// ListSyncsResponse is a page of attempts, newest first.
type ListSyncsResponse struct {
	Syncs    []Sync       `json:"syncs" nullable:"false" doc:"The attempts, newest first"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

func newSync(a state.Attempt) Sync {
	return Sync{
		Source:      newSource(a.Source),
		StartedAt:   a.Started,
		FinishedAt:  a.Finished,
		Outcome:     string(a.Outcome),
		Revision:    a.Revision.ID,
		Author:      a.Revision.Author,
		Signer:      a.Revision.Signer,
		Subject:     a.Revision.Subject,
		CommittedAt: a.Revision.At,
		Counts:      SyncCounts(a.Counts),
		Problems:    problems(a.Problems),
		Message:     a.Message,
	}
}

func (s *service) listSyncs(ctx context.Context, in *struct {
	FactoryUID
	PageQuery
},
) (ListSyncsResponse, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return ListSyncsResponse{}, err
	}

	list := "syncs " + f.UID
	after, err := in.after(list)
	if err != nil {
		return ListSyncsResponse{}, err
	}

	before := int64(0)
	if after != "" {
		if before, err = strconv.ParseInt(after, 10, 64); err != nil || before <= 0 {
			return ListSyncsResponse{}, api.InvalidField(
				"cursor",
				"not a cursor of this list: take next_cursor of the page before",
			)
		}
	}

	attempts, err := s.Store.Attempts(ctx, f.UID, before, in.Limit+1)
	if err != nil {
		return ListSyncsResponse{}, err
	}

	rows, info := page(
		in.PageQuery,
		list,
		attempts,
		func(a state.Attempt) string { return strconv.FormatInt(a.ID, 10) },
	)

	out := ListSyncsResponse{[]Sync{}, info}
	for _, a := range rows {
		out.Syncs = append(out.Syncs, newSync(a))
	}

	return out, nil
}

func (s *service) sync(ctx context.Context, in *struct {
	FactoryUID
	Body *SyncRequest
},
) (Sync, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return Sync{}, err
	}

	switch {
	case f.Detached:
		return Sync{}, detached(f)
	case f.Pin != nil:
		return Sync{}, api.Problem("conflict", "factory %q is %s", f.Name, f.PinMessage())
	case f.Suspended:
		return Sync{}, api.Problem("conflict", "factory %q is suspended: resume it in the settings", f.Name)
	case s.Sync == nil:
		return Sync{}, api.Problem("operation_not_supported", "this server does not apply definitions")
	}

	var allow SyncRequest
	if in.Body != nil {
		allow = *in.Body
	}

	started := time.Now().UTC()
	a, err := s.Sync(ctx, f.UID, allow)
	if err != nil && (a.Outcome != state.OutcomeFailed || errors.Is(err, state.ErrUnavailable) || ctx.Err() != nil) {
		return Sync{}, err
	}
	if a.Started.IsZero() {
		a.Started, a.Finished = started, time.Now().UTC()
	}

	a.Source = f.Source
	return newSync(a), nil
}

// detached is the answer if the source of a detached factory is needed.
func detached(f state.Factory) error {
	return api.Problem(
		"conflict",
		"factory %q is no longer configured, so it has no source: add it to the settings again",
		f.Name,
	)
}
