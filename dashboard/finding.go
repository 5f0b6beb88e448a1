package dashboard

// finding is a problem on the start page.
type finding struct {
	Tone   string
	Text   string
	Detail string
	Path   string // where to look, and act
	Action string // what the link says
}
