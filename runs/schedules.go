package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"millwright/api"
	"millwright/schema/agentconfig"
	"millwright/state"
)

// ListSchedulesResponse lists the schedules of the applied definitions.
type ListSchedulesResponse struct {
	Schedules []Schedule `json:"schedules" nullable:"false" doc:"The schedules, by factory and automation"`
}

// Schedule is a schedule trigger of an automation.
type Schedule struct {
	ID           string                          `json:"id" doc:"Its identifier: the automation's UID and a hash of the cron expression and name" example:"auto_01h455vb4pex5vsknk084sn02q.5d41402a"`
	Name         string                          `json:"name" doc:"schedule.name, or the automation's name where it has none"`
	CronSchedule string                          `json:"cron_schedule" doc:"schedule.cron, in UTC"`
	Enabled      bool                            `json:"enabled" doc:"Whether the automation is enabled"`
	Prompt       string                          `json:"prompt" doc:"The automation's prompt"`
	AgentConfig  *agentconfig.AmbientAgentConfig `json:"agent_config" doc:"The configuration of its runs"`
	AgentUID     string                          `json:"agent_uid,omitempty" doc:"The agent that does its runs"`
	AutomationID string                          `json:"automation_id" doc:"UID of the automation"`
	FactoryUID   string                          `json:"factory_uid" doc:"The factory whose definition has it"`
	History      ScheduleHistory                 `json:"history" doc:"When it fires"`
	CreatedAt    time.Time                       `json:"created_at" doc:"When the automation was first applied"`
	UpdatedAt    time.Time                       `json:"updated_at" doc:"When the automation last changed"`
}

// ScheduleHistory has the times at which a schedule fired and will fire.
type ScheduleHistory struct {
	NextRun *time.Time `json:"next_run" nullable:"true" doc:"When it fires next; null while the automation is disabled"`
}

type schedulePath struct {
	ID string `path:"scheduleId" doc:"The schedule's ID"`
}

func (s *service) registerSchedules() {
	api.Handle(s.api, api.Explained(
		api.Filtered(
			api.Operation(http.MethodGet, "/agent/schedules", "listSchedules", state.RoleViewer, "List schedules"),
		),
		"The schedule triggers of the applied definitions. They are changed in definition files.",
	), func(ctx context.Context, _ *struct{}) (ListSchedulesResponse, error) {
		all, err := s.schedules(ctx)
		return ListSchedulesResponse{all}, err
	})

	api.Handle(s.api, api.Explained(
		api.Filtered(api.Operation(
			http.MethodGet,
			"/agent/schedules/{scheduleId}",
			"getSchedule",
			state.RoleViewer,
			"Show a schedule",
		)),
		"A schedule trigger of an applied definition.",
	), func(ctx context.Context, in *schedulePath) (Schedule, error) {
		all, err := s.schedules(ctx)
		if err != nil {
			return Schedule{}, err
		}

		i := slices.IndexFunc(all, func(v Schedule) bool { return v.ID == in.ID })
		if i < 0 {
			return Schedule{}, api.Problem("resource_not_found", "no applied schedule has the ID %q", in.ID)
		}

		return all[i], nil
	})
}

// schedules returns the schedules of all factories that the caller reaches.
func (s *service) schedules(ctx context.Context) ([]Schedule, error) {
	routing, err := s.Store.Routing(ctx)
	if err != nil {
		return nil, err
	}

	now := time.Now()
	all := []Schedule{}
	for _, f := range routing.Factories {
		entries := scheduled(f)
		if len(entries) == 0 || !api.KeyOf(ctx).Reaches(f.UID) {
			continue
		}

		stamps, err := s.Store.ResourceStamps(ctx, f.UID)
		if err != nil {
			return nil, err
		}

		for _, e := range entries {
			described, err := e.describe(stamps[e.automation.UID], now)
			if err != nil {
				return nil, err
			}

			all = append(all, described)
		}
	}

	return all, nil
}

// describe returns the known facts of a schedule.
func (e *entry) describe(at state.Stamps, now time.Time) (Schedule, error) {
	a := e.automation
	config, err := agentconfig.Stored(a.Config)
	if err != nil {
		return Schedule{}, err
	}

	cron, _, _ := strings.Cut(e.key.Schedule, "\n")
	out := Schedule{
		ID:           e.id(),
		Name:         cmp.Or(e.name, a.Spec.Name),
		CronSchedule: cron,
		Enabled:      a.Spec.Enabled,
		Prompt:       a.Spec.Prompt,
		AgentConfig:  config,
		AgentUID:     a.Agent,
		AutomationID: a.UID,
		FactoryUID:   e.factory,
		CreatedAt:    at.Created,
		UpdatedAt:    at.Updated,
	}
	if next := e.schedule.Next(now).UTC(); a.Spec.Enabled && !next.IsZero() {
		out.History.NextRun = &next
	}

	return out, nil
}

// id returns the schedule's identifier, which changes only with its cron expression or name.
func (e *entry) id() string {
	sum := sha256.Sum256([]byte(e.key.Schedule))
	return e.key.AutomationUID + "." + hex.EncodeToString(sum[:4])
}
