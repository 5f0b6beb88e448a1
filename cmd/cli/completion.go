package cli

import "github.com/spf13/pflag"

// completion is one completion in progress: the command line so far, and the server that it is about.
type completion struct {
	*Client
	flags *pflag.FlagSet
	args  []string
}

// flag returns the value that a flag has so far, "" where the command has no such flag.
func (at completion) flag(name string) string {
	if f := at.flags.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// described is a value with what the shell shows beside it.
func described(value, description string) string { return clean(value) + "\t" + clean(description) }
