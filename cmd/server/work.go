package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/runs/dispatch"
	"millwright/runs/worker"
	"millwright/schema"
	"millwright/trace"
)

func (srv *server) work(ctx context.Context) error {
	client, err := srv.dispatch.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	cfg := workerConfig(&srv.cfg)
	cfg.Client, cfg.Updates = client, srv.updates
	cfg.Log, cfg.Registerer, cfg.Tracer = srv.log, srv.registry, srv.tracer
	return worker.Run(ctx, cfg)
}

// workerGrace is how long runs may continue at shutdown, so that a harness that must be killed, five
// seconds after SIGTERM, is gone before the program's own grace ends.
func workerGrace(grace time.Duration) time.Duration {
	return max(time.Millisecond, min(grace, 2*(grace-5500*time.Millisecond)))
}

// KeepRun is the internal command by which the program runs itself as a keeper of a run's processes.
const KeepRun = "keep-run"

// EnterSandbox is the internal command by which the program runs itself inside of the sandbox of a run.
const EnterSandbox = "enter-sandbox"

// worker returns the configuration of this process's worker.
func workerConfig(cfg *settings.Settings) worker.Config {
	u := cfg.HarnessUpdate()
	return worker.Config{
		Slots:     *cfg.Workers,
		Default:   u.Default,
		Grace:     workerGrace(time.Duration(cfg.Grace)),
		Harnesses: u.Harnesses,
		Keeper:    []string{os.Args[0], KeepRun},
		Enter:     []string{EnterSandbox},
		Hidden:    cfg.OwnFiles(),
		Version:   cli.Version(),
	}
}

// tracer returns a tracer, or nil if neither settings nor environment name a receiver.
func newTracer(ctx context.Context, cfg *settings.Settings, log *slog.Logger) (*trace.Tracer, error) {
	return trace.New(ctx, trace.Config{Endpoint: cfg.OTLPEndpoint, Version: cli.Version(), Log: log})
}

// closeTracer sends the last spans. An unreachable receiver delays the end by two seconds.
func closeTracer(t *trace.Tracer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	t.Close(ctx) // the error was logged
	return nil
}

// prices returns what language models cost, as dispatch takes it.
func prices(all map[string]settings.Price) map[string]dispatch.Price {
	out := make(map[string]dispatch.Price, len(all))
	for model, p := range all {
		out[model] = dispatch.Price(p)
	}
	return out
}

// serverBudget returns the budget of the settings, as the state takes it.
func serverBudget(b settings.Budget) schema.Budget {
	return schema.Budget{
		TokensPerRun: int64(b.TokensPerRun),
		USDPerRun:    float64(b.USDPerRun),
		TokensPerDay: int64(b.TokensPerDay),
		USDPerDay:    float64(b.USDPerDay),
		RunsPerDay:   int64(b.RunsPerDay),
	}
}
