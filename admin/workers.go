package admin

import (
	"context"
	"net/http"
	"time"

	"millwright/api"
	"millwright/state"
	"millwright/state/workers"
)

// Worker is a process that takes runs.
type Worker struct {
	UID        string    `json:"uid" doc:"Identifier of the process" example:"wrk_2x4y6z8a0b1c3d5e7f9g1h3j5k"`
	Name       string    `json:"name" doc:"Name; by default that of its host"`
	Version    string    `json:"version" doc:"Version of its program"`
	Slots      int       `json:"slots" doc:"Number of runs that it can execute at once"`
	Busy       int       `json:"busy" doc:"Number of runs that it executes"`
	Harnesses  []string  `json:"harnesses" nullable:"false" doc:"Its harnesses"`
	Runs       []string  `json:"runs" nullable:"false" doc:"IDs of the runs that it executes"`
	LastSeenAt time.Time `json:"last_seen_at" doc:"Time of its last report; it reports every 10 seconds"`
	Live       bool      `json:"live" doc:"Whether it reported within the last 30 seconds"`
	KeyUID     string    `json:"key_uid" doc:"UID of its API key; empty for a worker inside a server"`
}

// ListWorkersResponse is a page of workers.
type ListWorkersResponse struct {
	Workers  []Worker     `json:"workers" nullable:"false" doc:"The workers seen within a day, by UID"`
	PageInfo api.PageInfo `json:"page_info" doc:"Whether there is another page"`
}

func (s *service) registerWorkers() {
	api.Handle(
		s.api,
		api.Explained(
			api.Operation(http.MethodGet, "/workers", "listWorkers", state.RoleViewer, "List the workers"),
			"A worker that ends in order leaves the list at once. One that is lost stays in it for a "+
				"day, and is not live.",
		),
		s.listWorkers,
	)
}

func (s *service) listWorkers(ctx context.Context, in *struct{ PageQuery }) (ListWorkersResponse, error) {
	all, err := s.Store.Workers().All(ctx)
	if err != nil {
		return ListWorkersResponse{}, err
	}

	rows, info, err := paginate(in.PageQuery, "workers", all, func(w workers.Worker) string { return w.UID }, false)
	out := ListWorkersResponse{[]Worker{}, info}
	for _, w := range rows {
		out.Workers = append(out.Workers, newWorker(w))
	}

	return out, err
}

func newWorker(w workers.Worker) Worker {
	out := Worker{
		UID:        w.UID,
		Name:       w.Name,
		Version:    w.Version,
		Slots:      w.Slots,
		Busy:       len(w.Runs),
		Harnesses:  append([]string{}, w.Harnesses...),
		Runs:       append([]string{}, w.Runs...),
		LastSeenAt: w.Seen,
		Live:       w.Live(time.Now()),
	}
	if state.ValidID(state.PrefixKey, w.Worker) {
		out.KeyUID = w.Worker
	}
	return out
}
