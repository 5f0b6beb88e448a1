package runs

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"millwright/api"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// metaRetry is the key of metadata that names the run of which another is a retry.
const metaRetry = "retry_of"

type retryInput struct {
	RunPath
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Repeats with the same key and run within 24 hours get the first answer, and start nothing"`
	Client         string `header:"X-Millwright-Client" maxLength:"100" doc:"Origin of the request: cli or web. It sets the run's source"`
}

func (s *service) registerRetry() {
	api.Handle(
		s.api,
		api.Also(api.Explained(
			api.Operation(
				http.MethodPost,
				"/agent/runs/{runId}/retry",
				"retryRun",
				state.RoleRunner,
				"Start a run that has ended again, as a new run",
			),
			"The new run has the prompt, configuration and attachments of the first one, the payload of "+
				"its delivery included, an ID and a conversation of its own, and metadata.retry_of. "+
				"Follow-ups are not repeated. 409 while the run has not ended, and when the payload is "+
				"no longer kept.",
		), http.StatusConflict),
		s.retry,
	)
}

func (s *service) retry(ctx context.Context, in *retryInput) (RunAgentResponse, error) {
	r, err := s.run(ctx, in.RunPath)
	if err != nil {
		return RunAgentResponse{}, err
	}
	if !r.Ended() {
		return RunAgentResponse{}, api.Problem(
			"conflict",
			"run %q is %s: a run can be retried when it has ended",
			r.ID,
			r.State,
		)
	}
	if err := s.mayRepeat(ctx, r); err != nil {
		return RunAgentResponse{}, err
	}

	files, err := s.attached(ctx, r)
	if err != nil {
		return RunAgentResponse{}, err
	}

	n, err := s.repeated(ctx, r, source(in.Client))
	if err != nil {
		return RunAgentResponse{}, err
	}

	again, err := s.save(ctx, n, files, &createInput{
		IdempotencyKey: in.IdempotencyKey,
		RawBody:        []byte("retry\n" + r.ID),
	})
	return RunAgentResponse{again.ID, again.ID, queued}, err
}

// mayRepeat returns an error when a run has team secrets that its definition does not grant, or no longer
// grants, and the key of ctx is not an admin's.
func (s *service) mayRepeat(ctx context.Context, r state.Run) error {
	if err := s.mayContinue(ctx, r.ID); err != nil {
		return err
	}
	if len(r.Secrets) == 0 || api.KeyOf(ctx).Unbounded() {
		return nil
	}

	def, err := s.Store.DefinitionOf(ctx, r)
	if err != nil && !api.IsNotFound(err) {
		return err
	}

	for _, name := range r.Secrets {
		if !slices.Contains(def.Secrets, name) {
			return api.Problem(
				"not_authorized",
				"run %q has the secret %q, which its definition no longer grants: only a key of role "+
					"admin may retry it",
				r.ID,
				name,
			)
		}
	}

	return nil
}

// attached returns the files of a run with their bodies. The payload of its delivery is one of them.
func (s *service) attached(ctx context.Context, r state.Run) ([]state.Attachment, error) {
	files, err := s.Store.Attachments(ctx, r)
	if err != nil {
		return nil, err
	}

	payload := r.DeliveryUID == ""
	for i, f := range files {
		if files[i], err = s.Store.Attachment(ctx, r, f.Name); err != nil {
			return nil, err
		}
		payload = payload || f.Name == state.PayloadName
	}

	if !payload {
		return nil, api.Problem(
			"conflict",
			"run %q cannot be retried: the payload of delivery %q is no longer stored",
			r.ID,
			r.DeliveryUID,
		)
	}

	return files, nil
}

// repeated returns a run that does what r did. It belongs to no delivery: a delivery starts an automation once.
func (s *service) repeated(ctx context.Context, r state.Run, source string) (state.NewRun, error) {
	config, err := agentconfig.Decode(r.Config)
	if err != nil {
		return state.NewRun{}, err
	}

	servers, err := s.Store.Servers(ctx, r)
	if err != nil {
		return state.NewRun{}, err
	}

	key := api.KeyOf(ctx)
	n := state.NewRun{
		FactoryUID:    r.FactoryUID,
		Title:         r.Title,
		Prompt:        r.Prompt,
		Envelope:      r.Envelope,
		Source:        source,
		Creator:       state.Creator{Type: "service_account", UID: key.UID, DisplayName: key.Name},
		ParentRunID:   r.ParentRunID,
		AutomationUID: r.AutomationUID,
		WebhookUID:    r.WebhookUID,
		AgentUID:      r.AgentUID,
		TriggerURL:    r.TriggerURL,
		Config:        r.Config,
		Sealed:        servers,
		Secrets:       r.Secrets,
		ConfigName:    config.Name,
		ModelID:       config.ModelID,
		EnvironmentID: config.EnvironmentID,
		SkillSpec:     config.SkillSpec,
		CheckoutHead:  r.CheckoutHead,
		Metadata:      maps.Clone(r.Metadata),
	}
	if n.Metadata == nil {
		n.Metadata = map[string]string{}
	}

	n.Metadata[metaRetry] = r.ID
	return n, nil
}
