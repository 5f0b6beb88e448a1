package provider

import "github.com/tidwall/gjson"

// The providers whose events this package knows.
const (
	GitHub = "github"
	GitLab = "gitlab"
	Linear = "linear"
	Jira   = "jira"
	Slack  = "slack"
)

// table is what the deliveries of one kind of sender are.
type table struct {
	provider string
	schemes  []string // the signature schemes of webhooks that receive them
	title    string   // of the sender, for people
	header   string   // names the event; "" where the payload does
	field    string   // of the payload that names the event
	forge    string   // the kind of forge that the sender is; "" for none
	events   []event
}

type place struct {
	path  string
	value gjson.Result
}

// object is an object of a payload of which a member was asked for.
type object struct {
	path    string
	members []member // nil: not listed
	many    bool     // they are read for each path
}

// values are what a payload has for a key, in the form in which they are compared.
type values struct {
	key   *key
	texts []string
	many  bool // they are read for each condition
}

// body is a payload, with what was read of it.
type body struct {
	event   string // the event that the delivery's header names
	text    string
	seen    []place // one for each path that a table names
	objects []object
	once    bool // few paths are read: members are not listed
	judged  []judged
	values  []values
	known   Answer
}

// event is a row of a table.
type event struct {
	name   string
	on     []string         // the values of the header or field
	is     func(*body) bool // whether such a payload is the event
	keys   []key
	public bool   // strangers may cause it: they comment, mention or review where anybody may write
	never  string // why no delivery is it
	// own is the key that asks for the account of the server at the forge where the filter does not; "" for
	// none.
	own string
}

// key is a key of an event's filter.
type key struct {
	name    string
	compare comparison
	read    reader
	// must is set where a payload without a value never passes, also not what not_in lets through: the key
	// restricts who may start a run.
	must   bool
	unread string // why no payload has a value; then read is nil
	files  bool   // the values are the files of a pull request, which the forge is asked for
}

// reader yields the values that a payload has for a key, until yield returns false.
type reader func(b *body, yield func(value string) bool)

// judged is an event that a delivery was compared with.
type judged struct {
	event *event
	is    bool
}
