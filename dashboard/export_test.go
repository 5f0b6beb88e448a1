package dashboard

// Pure functions for tests.
var (
	Visible   = visible
	Editable  = editable
	Pretty    = pretty
	Clip      = clip
	Line      = line
	OwnPath   = ownPath
	ResendOf  = resendOf
	IDHeaders = idHeaders
	Since     = since
	Nice      = nice

	CommitPage = commitPage
)

// Figures is figures.
type Figures = figures

// Counted is counted for numbers.
var Counted = counted[int]

// Markdown is markdown.
func Markdown(text string) (string, bool) {
	rendered, structured := (&dashboard{prose: newMarkdown()}).markdown(text)
	return string(rendered), structured
}

// EveryView makes the templates of all pages.
func EveryView() error {
	views, err := (&dashboard{}).prepareViews()
	for _, view := range views {
		if err == nil {
			_, err = view()
		}
	}
	return err
}
