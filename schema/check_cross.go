package schema

// crossCheck checks what no single file shows: names that collide, the number
// of webhooks, references, and the foreman. It looks at every file, also at
// those with errors, so that one broken file hides no other problem.
func crossCheck(f *Factory, entries []entry) []Problem {
	c := crossed{factory: f, entries: entries}
	c.names()
	c.webhookLimit()
	c.notificationLimit()
	c.sealedLimit()
	c.references()
	c.foreman()
	c.sources()
	c.strangers()
	return c.problems
}
