package admin

import (
	"time"

	"millwright/reconcile/plan"
)

// planOptions returns what plans of this server have in common.
func (s *service) planOptions(factoryUID string, allowPrune, allowRename bool) plan.Options {
	opts := plan.Options{
		AllowPrune:   allowPrune,
		AllowRename:  allowRename,
		HarnessTypes: s.HarnessTypes,
		ForgeKinds:   s.forgeKinds(),
		OpenSecrets:  true,
		Now:          time.Now().UTC(),
	}

	opts.Used, opts.Reserved = s.sourceSecrets()
	if s.MaxDeliveries != nil {
		opts.MaxDeliveries = s.MaxDeliveries()
	}
	if s.Allowed != nil {
		prune, rename := s.Allowed(factoryUID)
		opts.AllowPrune, opts.AllowRename = opts.AllowPrune || prune, opts.AllowRename || rename
	}

	return opts
}
