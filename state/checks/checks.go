// Package checks stores what the server owes to forges about revisions of definitions: the status of a commit,
// and the comment on a pull request. One row is one commit of a watched branch, or one pull request. The rows
// are written in the transactions that decide, and published later.
package checks

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"millwright/state/db"
)

// Result is what a check found.
type Result string

// The results.
const (
	Pending Result = "pending" // the check goes on
	Success Result = "success"
	Failure Result = "failure"
	Error   Result = "error" // the check could not be made
)

// State is how far publishing has come.
type State string

// The states. Only Waiting rows are published. A change of what a row says makes it Waiting again.
const (
	Waiting State = "waiting"
	Doing   State = "doing"   // a server publishes it, until its lease ends
	Done    State = "done"    // the forge shows it
	Failed  State = "failed"  // the forge refused it
	Dropped State = "dropped" // it is not published any more, as of a closed pull request
)

// ErrConflict reports that a check is of another commit by now.
var ErrConflict = errors.New("the pull request has another head by now")

// Check is the stored result of a check, of a commit or a pull request, that the outbox publishes at a forge.
type Check struct {
	FactoryUID  string
	Number      int    // of the pull request; 0: a commit of the watched branch
	URL         string // of the git source
	Commit      string
	Result      Result
	Description string // of the status, on a repository that is not public
	Public      string // of the status, on a public repository
	Comment     string // text of the comment; empty: none yet
	Attempt     int64  // ID of the attempt to apply; 0 for pull requests
	Basis       string // names what the check compared; a check of the same is not repeated
	Open        bool   // the pull request is open
	Pull        Pull

	CommentID int64 // at the forge; 0: not known
	Comments  int   // how many the server made
	Account   string

	State            State
	Revision         int64 // counts the changes of what is published
	Attempts         int
	NextAt           time.Time // when it is due; of Doing ones, when the lease ends
	Reason           string    // why it was not published
	Created, Updated time.Time
}

// Pull is what a check has of its pull request.
type Pull struct {
	Title  string `json:"title"`
	Author string `json:"author"`
	URL    string `json:"url"`  // of its page
	Fork   bool   `json:"fork"` // its head is in another repository
	// Quiet is set when the pull request does not touch the definition: a comment is edited, and none is made.
	Quiet bool `json:"quiet"`
	// Problems are those at a line of a file, the first MaxProblems.
	Problems []Problem `json:"problems,omitempty"`
}

// MaxProblems bounds the problems of a check that have a place.
const MaxProblems = 50

// Problem is a problem at a line of a file.
type Problem struct {
	Path    string `json:"path"` // from the root of the repository
	Line    int    `json:"line"`
	Warning bool   `json:"warning,omitempty"` // else it is an error
	Code    string `json:"code"`
	Text    string `json:"text"`
}

// Subject names the check among those of its factory.
func (c Check) Subject() string {
	if c.Number == 0 {
		return c.Commit
	}
	return "#" + strconv.Itoa(c.Number)
}

// Table reads and writes the checks that a database stores.
type Table struct{ db *db.DB }

// New returns the checks in a database.
func New(d *db.DB) Table { return Table{d} }

const columns = `
	factory_uid, number, url, commit_id, result, description, public, comment, attempt, basis, is_open, pull,
	comment_id, comments, account, state, revision, attempts, next_at, reason, created_at, updated_at`

func scan(row db.Row) (Check, error) {
	var c Check
	var pull string
	var next, created, updated int64
	err := row.Scan(
		&c.FactoryUID, &c.Number, &c.URL, &c.Commit, &c.Result, &c.Description, &c.Public, &c.Comment, &c.Attempt,
		&c.Basis, &c.Open, &pull, &c.CommentID, &c.Comments, &c.Account, &c.State, &c.Revision, &c.Attempts, &next,
		&c.Reason, &created, &updated,
	)
	if err != nil {
		return c, err
	}

	c.NextAt, c.Created, c.Updated = db.Time(next), db.Time(created), db.Time(updated)
	return c, json.Unmarshal([]byte(pull), &c.Pull)
}

// Bounds of stored text, in characters.
const (
	maxDescription = 1000
	maxReason      = 1000
	maxTitle       = 300
)

// putSQL makes a check, or changes what it says. A row that says the same stays as it is.
const putSQL = `INSERT INTO checks (
	factory_uid, subject, number, url, commit_id, result, description, public, comment, attempt, basis, is_open,
	pull, next_at, created_at, updated_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)
ON CONFLICT (factory_uid, subject) DO UPDATE SET
	url = excluded.url,
	commit_id = excluded.commit_id,
	result = excluded.result,
	description = excluded.description,
	public = excluded.public,
	comment = excluded.comment,
	attempt = excluded.attempt,
	basis = excluded.basis,
	is_open = excluded.is_open,
	pull = excluded.pull,
	revision = checks.revision + 1,
	state = CASE WHEN checks.state = 'doing' THEN 'doing' ELSE 'waiting' END,
	attempts = CASE WHEN checks.state = 'doing' THEN checks.attempts ELSE 0 END,
	next_at = CASE WHEN checks.state = 'doing' THEN checks.next_at ELSE excluded.next_at END,
	reason = '',
	updated_at = excluded.updated_at
WHERE checks.url <> excluded.url
	OR checks.commit_id <> excluded.commit_id
	OR checks.result <> excluded.result
	OR checks.description <> excluded.description
	OR checks.public <> excluded.public
	OR checks.comment <> excluded.comment
	OR checks.is_open <> excluded.is_open`

// grace is how long a pending result waits for the one that ends it, which is then published alone.
const grace = 2 * time.Second

func put(ctx context.Context, tx *db.Tx, c Check, now time.Time) (changed bool, err error) {
	c.Pull.Title, c.Pull.Author = db.Bounded(c.Pull.Title, maxTitle), db.Bounded(c.Pull.Author, maxTitle)
	pull, err := json.Marshal(c.Pull)
	if err != nil {
		return false, err
	}

	due := now
	if c.Result == Pending {
		due = now.Add(grace)
	}

	n, err := tx.Exec(ctx, putSQL,
		c.FactoryUID, c.Subject(), c.Number, c.URL, c.Commit, string(c.Result),
		db.Bounded(c.Description, maxDescription), db.Bounded(c.Public, maxDescription), db.Text(c.Comment),
		c.Attempt, c.Basis, db.Flag(c.Open), db.Text(string(pull)), db.Micros(due), db.Micros(now))
	return n > 0, err
}
