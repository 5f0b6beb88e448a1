package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strconv"
	"time"

	"millwright/forge"
	"millwright/outbox/request"
	"millwright/state"
	"millwright/state/checks"
	"millwright/state/notice"
)

// maxComments is how many comments the server makes on a pull request: one, and another if somebody deletes it.
const maxComments = 2

// statusContext is how the context of a check's status begins; the factory's name follows.
const statusContext = "millwright/"

// dropped is an error that ends a check without publishing it.
type dropped string

func (d dropped) Error() string { return string(d) }

// closedDoor reports that a forge is not asked before a time.
type closedDoor struct{ until time.Time }

func (closedDoor) Error() string { return "the forge is not reachable, or asked to wait" }

func (o *Outbox) takeCheck(ctx context.Context) (func(), error) {
	c, ok, err := o.cfg.Store.Checks().Take(ctx, rowLease, o.hosts.busy()...)
	if err != nil || !ok {
		return nil, err
	}
	return func() { o.attemptCheck(ctx, c) }, nil
}

// attemptCheck publishes a taken check once and records the result. An end of the server does not interrupt it.
func (o *Outbox) attemptCheck(ctx context.Context, c checks.Check) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
	defer cancel()

	err := o.published(ctx, &c)
	record, end := context.WithTimeout(context.WithoutCancel(ctx), rowLease-attemptTime)
	defer end()

	outcome, failed := o.reportCheck(record, c, err)
	for errors.Is(failed, state.ErrUnavailable) && record.Err() == nil {
		pause(record, recordAgain)
		outcome, failed = o.reportCheck(record, c, err)
	}

	log := o.cfg.Log.With("factory_uid", c.FactoryUID, "revision", c.Commit, "outcome", outcome)
	kind := "revision"
	if c.Number > 0 {
		kind, log = "pull_request", log.With("pull_request", c.Number)
	}
	if failed != nil { // its lease ends, and the next attempt looks for the comment
		log.Warn("outbox: record a check", "error", failed)
		return
	}

	o.metrics.published.WithLabelValues(kind, string(outcome)).Inc()
	switch outcome {
	case checks.Done:
		log.Info("check published", "result", c.Result)
	case checks.Failed:
		log.Warn("check not published", "error", err)
	default:
		log.Debug("check not published", "attempt", c.Attempts, "error", err)
	}

	o.cfg.Store.Notify(notice.Check, c.FactoryUID)
}

// published is publish, whose panic on what a forge answers fails the check.
func (o *Outbox) published(ctx context.Context, c *checks.Check) (err error) {
	defer func() {
		if v := recover(); v != nil {
			o.cfg.Log.Error("outbox: panic",
				"factory_uid", c.FactoryUID, "panic", v, "stack", string(debug.Stack()))
			err = errors.New("an error of the server, which its log has")
		}
	}()

	return o.publish(ctx, c)
}

// reportCheck records the result of an attempt, and returns the state that follows.
func (o *Outbox) reportCheck(ctx context.Context, c checks.Check, err error) (checks.State, error) {
	table := o.cfg.Store.Checks()
	var gone dropped
	var shut closedDoor
	next, now := checks.Failed, time.Now()
	switch {
	case err == nil:
		return checks.Done, table.Report(ctx, c, checks.Done, now, "", true)
	case errors.As(err, &gone):
		next = checks.Dropped
	case errors.As(err, &shut):
		return checks.Waiting, table.Report(ctx, c, checks.Waiting, shut.until, "", false)
	case passes(err) && c.Attempts < maxAttempts:
		at := now.Add(wait(c.Attempts, err))
		return checks.Waiting, table.Report(ctx, c, checks.Waiting, at, err.Error(), true)
	}

	return next, table.Report(ctx, c, next, now, err.Error(), true)
}

// publish sets the status of a check, and writes its comment.
func (o *Outbox) publish(ctx context.Context, c *checks.Check) error {
	factory, err := o.cfg.Store.Factory(ctx, c.FactoryUID)
	if err != nil {
		return err
	}

	f, repo, ok := o.cfg.Forges.OfSource(c.URL)
	allowed := o.cfg.Checks != nil && o.cfg.Checks(c.FactoryUID)
	if factory.Detached || factory.Source.URL != c.URL || !ok || !allowed {
		return dropped("the settings have no forge of this source any more, or no checks")
	}
	until, ok := o.hosts.enter(f.Name(), c.FactoryUID)
	if !ok {
		return closedDoor{until}
	}
	defer o.hosts.leave(f.Name())

	err = o.tell(ctx, f, repo, factory, c)
	o.hosts.answered(f.Name(), err)
	return err
}

func (o *Outbox) tell(
	ctx context.Context, f forge.Forge, repo forge.Repository, factory state.Factory, c *checks.Check,
) error {
	if c.Number > 0 && c.Result != checks.Pending {
		if err := o.current(ctx, f, repo, c); err != nil {
			return err
		}
	}

	text := c.Description
	if c.Public != c.Description {
		private, err := o.hosts.private(ctx, f, repo)
		if err != nil && passes(err) {
			return err
		}
		if err != nil || !private {
			text = c.Public
		}
	}

	login, err := o.hosts.login(ctx, f)
	if err != nil && passes(err) {
		return err
	}
	if login != c.Account {
		if err := o.cfg.Store.Checks().Performs(ctx, *c, login); err != nil {
			return err
		}
	}

	status := forge.Status{
		Context:     statusContext + factory.Name,
		State:       string(c.Result),
		Description: text,
		URL:         o.page(*c),
	}
	if err := f.SetStatus(ctx, repo, c.Commit, status); err != nil {
		return err
	}
	if c.Number == 0 || c.Result == checks.Pending || c.Comment == "" {
		return nil
	}
	if err != nil {
		return err // without the login, nobody knows the comments of the server
	}

	if err := o.comment(ctx, f, repo, c, login); err != nil {
		return err
	}
	return o.annotate(ctx, f, repo, factory, c)
}

// annotate shows the problems of a pull request at their lines, where the forge does. A credential that may not
// annotate is no failure: the comment has the problems.
func (o *Outbox) annotate(
	ctx context.Context, f forge.Forge, repo forge.Repository, factory state.Factory, c *checks.Check,
) error {
	shows, ok := f.(forge.Annotates)
	if !ok || c.Pull.Quiet {
		return nil
	}

	found := forge.Annotations{
		Name:    statusContext + factory.Name + " problems",
		Failed:  c.Result != checks.Success,
		Title:   fmt.Sprintf("Problems at lines of the definition: %d", len(c.Pull.Problems)),
		Summary: "The comment of the pull request has the plan.",
		URL:     o.page(*c),
	}
	for _, p := range c.Pull.Problems {
		level := forge.AnnotationFailure
		if p.Warning {
			level = forge.AnnotationWarning
		}
		found.All = append(found.All, forge.Annotation{
			Path:    p.Path,
			Line:    p.Line,
			Level:   level,
			Title:   p.Code,
			Message: p.Text,
		})
	}

	err := shows.Annotate(ctx, repo, c.Commit, found)
	if err != nil && !passes(err) {
		if !errors.Is(err, forge.ErrUnsupported) {
			o.cfg.Log.Warn("problems not annotated", "pull_request", c.Number, "error", err)
		}
		return nil
	}
	return err
}

// current returns a reason to drop a check whose pull request is closed or has another head.
func (o *Outbox) current(ctx context.Context, f forge.Forge, repo forge.Repository, c *checks.Check) error {
	pull, err := f.Pull(ctx, repo, c.Number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return dropped("the pull request is gone")
	case err != nil:
		return err
	case pull.State != forge.PullOpen:
		return dropped("the pull request is " + pull.State)
	case pull.Head.Commit != c.Commit:
		o.cfg.Store.Notify(notice.Source, c.FactoryUID)
		return dropped("the pull request has another head by now")
	}

	return nil
}

// page returns the address of the page that has the check.
func (o *Outbox) page(c checks.Check) string {
	if o.cfg.PublicURL == "" {
		return ""
	}

	address := o.cfg.PublicURL + "/factories/" + url.PathEscape(c.FactoryUID)
	switch {
	case c.Number > 0:
		return address + "#pull-requests"
	case c.Attempt > 0:
		return address + "/history/" + strconv.FormatInt(c.Attempt, 10)
	}
	return address
}

// checkMark is how the UID of a check begins in the marker of its comment.
const checkMark = "check-"

func markOf(c checks.Check) string { return fmt.Sprintf("%s%d-%s", checkMark, c.Number, c.FactoryUID) }

// comment edits the comment of a check, or makes it.
func (o *Outbox) comment(
	ctx context.Context, f forge.Forge, repo forge.Repository, c *checks.Check, login string,
) error {
	on := forge.Thread{Number: c.Number, Pull: true}
	body := request.Mark(o.key, markOf(*c), c.Comment)
	if c.CommentID != 0 {
		err := f.UpdateComment(ctx, repo, on, c.CommentID, body)
		if !errors.Is(err, forge.ErrNotFound) {
			return err
		}
	}

	if c.Pull.Quiet && c.CommentID == 0 && c.Account == "" {
		return nil // nothing was ever published
	}

	// The server may have made it and died before it recorded that.
	made, err := f.Comments(ctx, repo, on)
	if err != nil {
		return err
	}
	for _, had := range made {
		if had.Author == login && request.Marked(o.key, markOf(*c), had.Body) {
			c.CommentID, c.Comments = had.ID, max(c.Comments, 1)
			return f.UpdateComment(ctx, repo, on, had.ID, body)
		}
	}

	if c.Pull.Quiet || c.Comments >= maxComments {
		return nil // people do not want it
	}

	written, err := f.CreateComment(ctx, repo, on, body)
	if err == nil {
		c.CommentID, c.Comments = written.ID, c.Comments+1
	}

	return err
}
