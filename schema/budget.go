package schema

// Budget bounds what runs may use. A zero value bounds nothing. Days are of UTC.
type Budget struct {
	TokensPerRun int64   `json:"tokensPerRun,omitempty"` // input and output together
	USDPerRun    float64 `json:"usdPerRun,omitempty"`
	TokensPerDay int64   `json:"tokensPerDay,omitempty"`
	USDPerDay    float64 `json:"usdPerDay,omitempty"`
	RunsPerDay   int64   `json:"runsPerDay,omitempty"` // executions that begin
}

// budget reads the budget of a mapping, nil when there is none.
func budget(m map[string]any) *Budget {
	b, ok := m["budget"].(map[string]any)
	if !ok {
		return nil
	}

	return &Budget{
		TokensPerRun: int64(number(b, "tokensPerRun")),
		USDPerRun:    number(b, "usdPerRun"),
		TokensPerDay: int64(number(b, "tokensPerDay")),
		USDPerDay:    number(b, "usdPerDay"),
		RunsPerDay:   int64(number(b, "runsPerDay")),
	}
}
