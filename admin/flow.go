package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"millwright/api"
	"millwright/state"
)

// FlowDecision is what the flow of an automation made of a delivery that started no run of its own, or one that waits
// for a time.
type FlowDecision struct {
	AutomationID string `json:"automation_id" doc:"The automation"`
	Decision     string `json:"decision" enum:"skipped: concurrency,skipped: queue full,skipped: forge,skipped: trigger,skipped: newer,waits: forge,debounced,follow-up" doc:"skipped: nothing started. waits: the forge's answer decides. debounced: it is one of the deliveries of a run. follow-up: it is a message to a run"`
	RunID        string `json:"run_id,omitempty" doc:"The run that the delivery went to"`
	Detail       string `json:"detail,omitempty" doc:"Why, in words"`
}

func flowDecisions(all []state.FlowDecision) (out []FlowDecision) {
	for _, d := range all {
		out = append(out, FlowDecision{d.AutomationUID, d.Decision, d.RunID, d.Detail})
	}
	return out
}

// AutomationFlow is what waits in an automation, what was skipped, and the conversations that deliveries go to.
type AutomationFlow struct {
	Waiting       []FlowRun           `json:"waiting" nullable:"false" doc:"Runs that no worker may take yet, oldest first; at most 1000"`
	Undecided     []UndecidedDelivery `json:"undecided" nullable:"false" doc:"Deliveries that the forge's answer decides on, oldest first; at most 1000"`
	Skipped       []SkippedDelivery   `json:"skipped" nullable:"false" doc:"Deliveries that started nothing, newest first; at most 100"`
	Conversations []FlowRun           `json:"conversations" nullable:"false" doc:"Runs that later deliveries may be follow-ups of, last used first; at most 100"`
}

// FlowRun is a run that other deliveries of its automation wait for or go to.
type FlowRun struct {
	RunID      string     `json:"run_id" doc:"Identifier of the run"`
	Title      string     `json:"title" doc:"Title"`
	State      string     `json:"state" doc:"State"`
	WaitsFor   string     `json:"waits_for,omitempty" enum:"concurrency,debounce,retry" doc:"What keeps a queued run from workers"`
	StartsAt   *time.Time `json:"starts_at,omitempty" doc:"When a run that waits for a time is ready"`
	DeliveryID string     `json:"delivery_id,omitempty" doc:"The newest delivery"`
	CreatedAt  time.Time  `json:"created_at" doc:"Time of creation"`
}

// UndecidedDelivery is a delivery that starts a run only if its forge's answer matches a trigger.
type UndecidedDelivery struct {
	DeliveryID string    `json:"delivery_id" doc:"Identifier of the delivery"`
	WebhookID  string    `json:"webhook_id" doc:"The webhook"`
	Attempts   int       `json:"attempts" doc:"How often the server has asked the forge"`
	ReceivedAt time.Time `json:"received_at" doc:"Time of arrival"`
}

// SkippedDelivery is a delivery that started nothing.
type SkippedDelivery struct {
	DeliveryID string    `json:"delivery_id" doc:"Identifier of the delivery"`
	WebhookID  string    `json:"webhook_id" doc:"The webhook"`
	Decision   string    `json:"decision" doc:"Why" example:"skipped: concurrency"`
	ReceivedAt time.Time `json:"received_at" doc:"Time of arrival"`
}

// DroppedRuns are the runs that a request has cancelled.
type DroppedRuns struct {
	RunIDs []string `json:"run_ids" nullable:"false" doc:"Identifiers of the runs"`
}

// AutomationUID are the path parameters that name an automation.
type AutomationUID struct {
	FactoryUID
	Automation string `path:"automation" doc:"Name or UID of the automation" example:"triage"`
}

// What an answer lists at most.
const (
	maxWaitingShown = 1000
	maxFlowShown    = 100
)

func (s *service) registerFlow() {
	const path = "/factory/{uid}/automations/{automation}"
	api.Handle(s.api, api.Operation(http.MethodGet, path+"/flow", "getAutomationFlow", state.RoleViewer,
		"List what waits in an automation, what was skipped, and its conversations"), s.automationFlow)
	api.Handle(s.api, api.Explained(
		api.Operation(http.MethodDelete, path+"/waiting", "dropWaitingRuns", state.RoleRunner,
			"Cancel the runs of an automation that wait"),
		"Cancels the runs that wait for others of the automation, for the end of a burst of deliveries, or for "+
			"their next attempt: at most 1000. Runs that workers may take or hold go on."), s.dropWaiting)
}

// flowOf returns the UID of an automation, which may be one that was deleted.
func (s *service) flowOf(ctx context.Context, in AutomationUID) (string, error) {
	f, err := s.factory(ctx, in.Factory)
	if err != nil {
		return "", err
	}

	cur, err := s.Store.Current(ctx, f.UID)
	if err != nil {
		return "", err
	}

	if uid := cur.UIDs[state.ResourceKey("automation", in.Automation)]; uid != "" {
		return uid, nil
	}
	for _, a := range cur.Tree.Automations {
		if uid := cur.UIDs[state.ResourceKey("automation", a.Name)]; uid == in.Automation {
			return uid, nil
		}
	}

	if state.ValidID(state.PrefixAutomation, in.Automation) {
		waiting, err := s.Store.WaitingRuns(ctx, in.Automation, 1)
		if err != nil {
			return "", err
		}
		if len(waiting) > 0 && waiting[0].FactoryUID == f.UID { // of one that was deleted
			return in.Automation, nil
		}
	}

	return "", api.Problem("resource_not_found", "automation %q does not exist", in.Automation)
}

func (s *service) automationFlow(ctx context.Context, in *AutomationUID) (AutomationFlow, error) {
	out := AutomationFlow{
		Waiting:       []FlowRun{},
		Undecided:     []UndecidedDelivery{},
		Skipped:       []SkippedDelivery{},
		Conversations: []FlowRun{},
	}
	uid, err := s.flowOf(ctx, *in)
	if err != nil {
		return out, err
	}

	waiting, err := s.Store.WaitingRuns(ctx, uid, maxWaitingShown)
	if err != nil {
		return out, err
	}

	undecided, err := s.Store.UndecidedOf(ctx, uid, maxWaitingShown)
	if err != nil {
		return out, err
	}

	talks, err := s.Store.ConversationRuns(ctx, uid, maxFlowShown)
	if err != nil {
		return out, err
	}

	skipped, err := s.Store.FlowDecisions(ctx, uid, "", maxFlowShown)
	if err != nil {
		return out, err
	}

	for _, r := range waiting {
		out.Waiting = append(out.Waiting, flowRun(r))
	}
	for _, u := range undecided {
		d := UndecidedDelivery{u.DeliveryUID, u.WebhookUID, u.Attempts, u.Received}
		out.Undecided = append(out.Undecided, d)
	}
	for _, r := range talks {
		out.Conversations = append(out.Conversations, flowRun(r))
	}
	for _, d := range skipped {
		out.Skipped = append(out.Skipped, SkippedDelivery{d.DeliveryUID, d.WebhookUID, d.Decision.Decision, d.At})
	}

	return out, nil
}

func flowRun(r state.Run) FlowRun {
	return FlowRun{r.ID, r.Title, string(r.State), r.WaitsFor, r.StartsAt(), r.DeliveryUID, r.Created}
}

func (s *service) dropWaiting(ctx context.Context, in *AutomationUID) (DroppedRuns, error) {
	out := DroppedRuns{RunIDs: []string{}}
	uid, err := s.flowOf(ctx, *in)
	if err != nil {
		return out, err
	}

	waiting, err := s.Store.WaitingRuns(ctx, uid, maxWaitingShown)
	if err != nil {
		return out, err
	}

	slices.Reverse(waiting) // none takes the place of one before it
	for _, r := range waiting {
		dropped, err := s.Store.DropWaiting(ctx, r.ID)
		if err != nil {
			return out, err
		}
		if dropped {
			out.RunIDs = append(out.RunIDs, r.ID)
		}
	}

	slices.Reverse(out.RunIDs)
	return out, nil
}
