package dispatch

import (
	"context"

	"millwright/runs/wire"
	"millwright/state"
)

const million = 1e6

// SetPrices changes the prices of language models, for usage that is reported from now on.
func (d *Dispatcher) SetPrices(all map[string]Price) { d.prices.Store(&all) }

// setUsage records what an attempt has used so far. It describes the budget that the run has exceeded with it, if any.
func (d *Dispatcher) setUsage(ctx context.Context, c state.Claim, u *wire.Usage) (over string, err error) {
	if u == nil {
		return "", nil
	}

	added, r, err := d.cfg.Store.SetUsage(ctx, c, d.priced(u.Clean()))
	if err != nil {
		return "", err
	}
	if over, err = d.cfg.Store.OverBudget(ctx, r); err != nil {
		return "", err
	}

	name := ""
	if r.FactoryUID != "" {
		f, err := d.cfg.Store.Factory(ctx, r.FactoryUID)
		if err != nil {
			d.cfg.Log.Warn("dispatch: count what a run has used", "run_id", c.RunID, "error", err)
			return over, nil // it is recorded
		}
		name = f.Name
	}
	d.metrics.used(name, added)

	return over, nil
}

// priced returns the part of each model, with what it cost as far as that is known, and the rest that is of no
// model.
func (d *Dispatcher) priced(u wire.Usage) []state.ModelUsage {
	rest := wire.ModelUsage{
		InputTokens:  u.InputTokens,
		OutputTokens: u.OutputTokens,
		CachedTokens: u.CachedTokens,
		CostUSD:      u.CostUSD,
	}
	var all []state.ModelUsage
	for _, m := range u.Models {
		all = append(all, d.pricedModel(m))
		rest.InputTokens = max(0, rest.InputTokens-m.InputTokens)
		rest.OutputTokens = max(0, rest.OutputTokens-m.OutputTokens)
		rest.CachedTokens = max(0, rest.CachedTokens-m.CachedTokens)
		rest.CostUSD -= m.CostUSD
	}

	if rest.CostUSD < 1/million { // what rounding leaves
		rest.CostUSD = 0
	}
	if rest.Total() > 0 || rest.CostUSD > 0 {
		all = append(all, d.pricedModel(rest))
	}

	return all
}

func (d *Dispatcher) pricedModel(m wire.ModelUsage) state.ModelUsage {
	out := state.ModelUsage{
		Model:        m.Model,
		InputTokens:  m.InputTokens,
		OutputTokens: m.OutputTokens,
		CachedTokens: m.CachedTokens,
	}

	price, known := (*d.prices.Load())[m.Model]
	switch {
	case m.CostUSD > 0:
		out.CostUSD = &m.CostUSD
	case known:
		fresh := float64(m.InputTokens - m.CachedTokens)
		cached, output := float64(m.CachedTokens), float64(m.OutputTokens)
		dollars := (fresh*price.Input + cached*price.CachedInput + output*price.Output) / million
		out.CostUSD = &dollars
	}

	return out
}
