package worker

import "errors"

// Check returns the reason why a worker would refuse the update.
func (u Update) Check() error { return errors.New("harnesses run on Linux and macOS") }
