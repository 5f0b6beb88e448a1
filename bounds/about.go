package bounds

// about describes a bound, for its metrics and for docs/limits.md.
type about struct{ name, what, unit, share, setting, answer string }

func (a about) describe() about { return a }
