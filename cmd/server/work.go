package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/runs/worker"
	"millwright/trace"
)

func (srv *server) work(ctx context.Context) error {
	client, err := srv.dispatch.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	cfg := workerConfig(&srv.cfg)
	cfg.Client, cfg.Log, cfg.Registerer, cfg.Tracer, cfg.Updates = client, srv.log, srv.registry, srv.tracer, srv.updates
	return worker.Run(ctx, cfg)
}

// workerGrace is how long runs may go on at the end, so that a harness which has to be killed, five
// seconds after it was asked to stop, is gone when the program's own grace is over.
func workerGrace(grace time.Duration) time.Duration {
	return max(time.Millisecond, min(grace, 2*(grace-5500*time.Millisecond)))
}

// worker says how this process executes runs.
func workerConfig(cfg *settings.Settings) worker.Config {
	u := cfg.HarnessUpdate()
	return worker.Config{
		Slots: *cfg.Workers, Default: u.Default, Grace: workerGrace(time.Duration(cfg.Grace)), Harnesses: u.Harnesses,
		Keeper: []string{os.Args[0], KeepRun}, Version: cli.Version(),
	}
}

// tracer makes what sends traces, nil when the settings and the environment name no receiver.
func newTracer(ctx context.Context, cfg *settings.Settings, log *slog.Logger) (*trace.Tracer, error) {
	return trace.New(ctx, trace.Config{Endpoint: cfg.OTLPEndpoint, Version: cli.Version(), Log: log})
}

// closeTracer sends the last spans. A receiver that is not there holds up the end for two seconds.
func closeTracer(t *trace.Tracer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.Close(ctx) // why it cannot was logged
	return nil
}
