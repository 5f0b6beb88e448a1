package wire

// Checkout has the repositories that a run starts in.
type Checkout struct {
	Repositories []Repository `json:"repositories"`
	Author       string       `json:"author"` // of the commit with what the harness did not commit
	Title        string       `json:"title"`  // of this commit
}

// Repository is a repository to check out.
type Repository struct {
	Position  int    `json:"position"` // among those of the run, from 0
	Owner     string `json:"owner"`
	Name      string `json:"name"`
	Directory string `json:"directory,omitempty"` // below the working directory; empty: the directory itself
	URL       string `json:"url"`                 // without a credential
	Via       string `json:"via,omitempty"`       // where it is fetched instead, with User and Password
	User      string `json:"user,omitempty"`
	Password  string `json:"password,omitempty"` // for the fetch alone; no process of the run gets it
	Ref       string `json:"ref,omitempty"`      // a branch or tag; empty: the default branch
	Commit    string `json:"commit,omitempty"`   // on Ref; empty: the one that Ref has
	// Proven: Commit is checked out only if a branch of the repository has it, else the branch Base.
	Proven bool   `json:"proven,omitempty"`
	Base   string `json:"base,omitempty"` // empty: the default branch
}

// FullName returns owner/name.
func (r Repository) FullName() string { return r.Owner + "/" + r.Name }

// Base is the commit that a checkout of a repository began with.
type Base struct {
	Position int    `json:"position"`
	Commit   string `json:"commit"`
	Branch   string `json:"branch,omitempty"`
	// Untrusted: no branch of the repository has the commit that was to be checked out.
	Untrusted bool `json:"untrusted,omitempty"`
}

// MaxRepositories is how many repositories a run has at most.
const MaxRepositories = 20

// OwnDirectory is the directory of a harness that holds our own files, and what the agent leaves for us.
const OwnDirectory = ".millwright"

// Places in OwnDirectory.
const (
	ArtifactsDirectory = "artifacts"     // files for people
	OutputsFile        = "outputs.jsonl" // requests of the agent, one JSON object a line
)
