package settings

import "fmt"

// settingError is an error of a setting.
type settingError struct {
	at  string // its place, as factories[0].name
	err error
}

func (e *settingError) Error() string { return e.at + e.err.Error() }

func (e *settingError) Unwrap() error { return e.err }

// checks collects the errors of settings.
type checks struct{ wrong []*settingError }

// bad notes an error of the setting at a place. The text continues the place.
func (c *checks) bad(at, format string, args ...any) {
	c.wrong = append(c.wrong, &settingError{at, fmt.Errorf(format, args...)})
}
