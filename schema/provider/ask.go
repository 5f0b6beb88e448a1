package provider

// Ask is what a forge is asked for before a trigger can be judged. The zero Ask is nothing.
type Ask struct {
	Files   bool // the files that the pull request changes
	Account bool // the account of the server there
}

// Any reports whether the forge is asked for something.
func (a Ask) Any() bool { return a.Files || a.Account }

// And returns what is asked for by either.
func (a Ask) And(b Ask) Ask { return Ask{a.Files || b.Files, a.Account || b.Account} }

// Answer is what a forge has answered. What was not asked is zero.
type Answer struct {
	Ask
	Files   []string
	Account string // a login
}
