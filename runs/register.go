package runs

import (
	"log/slog"
	"strings"
	"time"

	"millwright/api"
	"millwright/forge"
)

// Register adds the endpoints of the runs API to a.
func Register(a *api.API, cfg Config) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}

	if cfg.Forges == nil {
		cfg.Forges, _ = forge.Open(forge.Config{}) // without forges it never fails
	}

	cfg.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/")
	s := &service{Config: cfg, api: a, began: time.Now()}
	s.registerCreate()
	s.registerRead()
	s.registerSteer()
	s.registerAnswers()
	s.registerRetry()
	s.registerConversation()
	s.registerEvents()
	s.registerSkills()
	s.registerTasks()
	s.registerTimeline()
	s.registerArtifacts()
	s.registerOutputs()
	s.registerTranscripts()
	s.registerModels()
	s.registerDefinitions()
	s.registerIdentities()
	s.registerSchedules()
	s.registerUnsupported()
}
