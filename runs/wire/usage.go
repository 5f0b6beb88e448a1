package wire

import (
	"cmp"
	"slices"
)

// Usage is the use of a language model, and its cost.
type Usage struct {
	InputTokens  int64        `json:"input_tokens"` // cached ones included
	OutputTokens int64        `json:"output_tokens"`
	CachedTokens int64        `json:"cached_input_tokens"`
	CostUSD      float64      `json:"inference_cost_usd,omitempty"` // as the agent reports it; 0: it does not
	Models       []ModelUsage `json:"models,omitempty"`             // in the order of their names
}

// ModelUsage is the part of one model.
type ModelUsage struct {
	Model        string  `json:"model_id"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CachedTokens int64   `json:"cached_input_tokens"`
	CostUSD      float64 `json:"inference_cost_usd,omitempty"`
}

// Bounds of a usage. More tokens or dollars in one execution are no figure that an agent counted.
const (
	maxTokens = int64(1e12)
	maxCost   = 1e9
	maxModels = 20
	maxModel  = 200
)

// Total is how many tokens went in and out.
func (u Usage) Total() int64 { return u.InputTokens + u.OutputTokens }

// Total is how many tokens went in and out of the model.
func (m ModelUsage) Total() int64 { return m.InputTokens + m.OutputTokens }

// Zero reports whether nothing was counted.
func (u Usage) Zero() bool { return u.Total() == 0 && u.CostUSD == 0 && len(u.Models) == 0 }

// Clean returns the usage with figures that agents cannot have counted, such as negative ones, bounded.
func (u Usage) Clean() Usage {
	u.InputTokens, u.OutputTokens = tokens(u.InputTokens), tokens(u.OutputTokens)
	u.CachedTokens = min(tokens(u.CachedTokens), u.InputTokens)
	u.CostUSD = dollars(u.CostUSD)

	var models []ModelUsage
	for _, m := range u.Models {
		if len(m.Model) > maxModel || m.Model == "" || len(models) == maxModels {
			continue
		}

		m.InputTokens, m.OutputTokens = tokens(m.InputTokens), tokens(m.OutputTokens)
		m.CachedTokens = min(tokens(m.CachedTokens), m.InputTokens)
		m.CostUSD = dollars(m.CostUSD)
		models = append(models, m)
	}

	slices.SortFunc(models, func(a, b ModelUsage) int { return cmp.Compare(a.Model, b.Model) })
	u.Models = slices.CompactFunc(models, func(a, b ModelUsage) bool { return a.Model == b.Model })
	return u
}

func tokens(n int64) int64 { return max(0, min(n, maxTokens)) }

func dollars(v float64) float64 {
	if !(v > 0) { // not a number either
		return 0
	}
	return min(v, maxCost)
}

// Since returns what was counted after before, for agents that count a whole session. When a count is less
// than before, the agent has begun to count anew.
func (u Usage) Since(before Usage) Usage {
	if u.InputTokens < before.InputTokens || u.OutputTokens < before.OutputTokens || u.CostUSD < before.CostUSD {
		return u
	}

	u.InputTokens -= before.InputTokens
	u.OutputTokens -= before.OutputTokens
	u.CachedTokens = max(0, u.CachedTokens-before.CachedTokens)
	u.CostUSD -= before.CostUSD

	var models []ModelUsage
	for _, m := range u.Models {
		for _, was := range before.Models {
			if was.Model == m.Model {
				m.InputTokens = max(0, m.InputTokens-was.InputTokens)
				m.OutputTokens = max(0, m.OutputTokens-was.OutputTokens)
				m.CachedTokens = max(0, m.CachedTokens-was.CachedTokens)
				m.CostUSD = max(0, m.CostUSD-was.CostUSD)
			}
		}

		if m.Total() > 0 {
			models = append(models, m)
		}
	}

	u.Models = models
	return u
}

// Plus returns both together.
func (u Usage) Plus(other Usage) Usage {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.CachedTokens += other.CachedTokens
	u.CostUSD += other.CostUSD

	models := slices.Clone(u.Models)
	for _, m := range other.Models {
		i := slices.IndexFunc(models, func(o ModelUsage) bool { return o.Model == m.Model })
		if i < 0 {
			models = append(models, m)
			continue
		}

		models[i].InputTokens += m.InputTokens
		models[i].OutputTokens += m.OutputTokens
		models[i].CachedTokens += m.CachedTokens
		models[i].CostUSD += m.CostUSD
	}

	slices.SortFunc(models, func(a, b ModelUsage) int { return cmp.Compare(a.Model, b.Model) })
	u.Models = models
	return u
}
