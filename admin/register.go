package admin

import (
	"log/slog"
	"strings"

	"millwright/api"
)

// Register adds the endpoints of the management API to a.
func Register(a *api.API, cfg Config) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	s := &service{Config: cfg, api: a}
	s.describe()
	s.registerFactories()
	s.registerSecrets()
	s.registerKeys()
	s.registerWebhooks()
	s.registerDeliveries()
	s.registerListen()
	s.registerAutomations()
	s.registerFilters()
	s.registerPlans()
	s.registerSchemas()
	s.registerPush()
	s.registerManaged()
	s.registerWorkers()
	s.registerAudit()
	s.registerNotifications()
	s.registerRollback()
}
