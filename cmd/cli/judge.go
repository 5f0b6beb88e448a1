package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"millwright/api"
	"millwright/reconcile/plan"
	"millwright/schema"
)

// judgement is what a server says of a tree.
type judgement struct {
	plan     plan.Plan
	body     []byte           // of the answer
	problems []schema.Problem // the plan's, and what only this machine can see
	notices  []string
}

// errNotAsked says that a tree cannot be shown to a server.
var errNotAsked = errors.New("the server was not asked")

// judge asks the server what applying the tree would do. The tree is the one that note and loaded hold.
// The rules that look at UIDs run on loaded again, so that its problems have the fixes that follow.
func (c *Client) judge(
	ctx context.Context,
	note *reading,
	loaded *schema.Result,
	allow allowances,
) (*judgement, error) {
	files, err := note.files(loaded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAsked, err)
	}
	if files == nil {
		files = []schema.File{}
	}

	j, err := c.plan(ctx, map[string]any{
		"files":        files,
		"allow_prune":  allow.prune,
		"allow_rename": allow.rename,
	})
	if err != nil {
		if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusBadRequest && !loaded.Valid() {
			// Such as one with impossible paths.
			return nil, fmt.Errorf("%w: it does not accept such a tree", errNotAsked)
		}

		return nil, err
	}

	names := make(map[string]string, len(j.plan.WebhookUIDs))
	for name, uid := range j.plan.WebhookUIDs {
		names[uid] = name
	}

	loaded.Check(schema.Known{UIDs: j.plan.WebhookUIDs, KnownUIDs: names, Gone: j.plan.Gone})
	j.merge(loaded.Problems)
	return j, nil
}

// allowances are what a plan takes for allowed.
type allowances struct{ prune, rename bool }

// plan asks for a plan: of the tree in body, or of the source's head when body is nil.
func (c *Client) plan(ctx context.Context, body any) (*judgement, error) {
	f, err := c.one(ctx)
	if err != nil {
		return nil, err
	}

	resp, err := c.send(ctx, http.MethodPost, "/factory/"+f.UID+"/plan", body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()

	j := &judgement{}
	if j.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return nil, &Exit{ExitUnreachable, fmt.Errorf("reading the answer of %s: %w", c.Server, err)}
	}
	if err := c.Decode(j.body, &j.plan); err != nil {
		return nil, err
	}

	if len(j.plan.Backtests) > 0 && publicJob() {
		if err := j.dropBacktests(); err != nil {
			return nil, err
		}
	}

	j.problems = j.plan.Problems
	if n := versionNotice(resp.Header.Get(api.VersionHeader), j.plan.Problems); n != "" {
		j.notices = append(j.notices, n)
	}

	return j, nil
}

// dropBacktests removes what stored deliveries reveal.
func (j *judgement) dropBacktests() error {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(j.body, &answer); err != nil {
		return err
	}

	delete(answer, "backtest")
	j.plan.Backtests = nil
	j.notices = append(j.notices, "no backtest: strangers may read this job's output")
	var err error
	j.body, err = json.Marshal(answer)
	return err
}

// publicJob reports whether this is a job for a public repository or for the change of a fork: of GitHub
// Actions, of a service with the same variables, or of GitLab CI.
func publicJob() bool {
	source := os.Getenv("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
	fork := source != "" && source != os.Getenv("CI_PROJECT_ID")
	if fork || os.Getenv("CI_PROJECT_VISIBILITY") == "public" {
		return true
	}

	text, err := os.ReadFile(os.Getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return false
	}

	type repository struct {
		Name    string `json:"full_name"`
		Private *bool
	}
	var event struct {
		Repository  repository
		PullRequest struct{ Head struct{ Repo repository } } `json:"pull_request"`
	}
	if err := json.Unmarshal(text, &event); err != nil {
		return false
	}

	private, head := event.Repository.Private, event.PullRequest.Head.Repo.Name
	return private != nil && !*private || head != "" && head != event.Repository.Name
}

// merge adds to the server's problems those of the tree's own check. A server of another version decides
// alone about what both can see.
func (j *judgement) merge(own []schema.Problem) {
	type key struct {
		path, code   string
		line, column int
	}
	keyOf := func(p schema.Problem) key { return key{p.Path, p.Code, p.Line, p.Column} }
	at := map[key]int{}
	for i, p := range j.problems {
		at[keyOf(p)] = i
	}

	onlyHere := []string{
		"symlink",
		"unreadable",
		"not-utf8",
		"missing-path",
		"unsupported-path",
		"file-too-large",
		"tree-too-large",
	}

	for _, p := range own {
		if i, both := at[keyOf(p)]; both {
			j.problems[i].Fix = p.Fix
		} else if len(j.notices) == 0 || slices.Contains(onlyHere, p.Code) {
			j.problems = append(j.problems, p)
			if p.Severity == schema.SeverityError {
				j.plan.WouldApply = false
			}
		}
	}

	slices.SortStableFunc(j.problems, func(a, b schema.Problem) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path),
			a.Line-b.Line,
			a.Column-b.Column,
			strings.Compare(a.Code, b.Code),
		)
	})

	j.plan.Problems = j.problems
}

// json is the answer as the API gave it, with what merge added.
func (j *judgement) json() ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(j.body, &members); err != nil {
		return nil, err
	}

	for name, v := range map[string]any{"would_apply": j.plan.WouldApply, "problems": j.problems} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}

		members[name] = text
	}

	return json.Marshal(members)
}

// versionNotice says that this program and the server are of different versions, if they are. A rule of the
// server's that is not known here is as sure a sign as its number.
func versionNotice(header string, problems []schema.Problem) string {
	server, definitions, _ := strings.Cut(header, "; definitions=")
	order := cmp.Or(compareVersions(schema.SchemaVersion, definitions), compareVersions(Version(), server))
	for _, p := range problems {
		if _, known := schema.LookupRule(p.Code); !known {
			order = -1
		}
	}

	if order == 0 {
		return ""
	}

	word := map[bool]string{true: "older", false: "newer"}[order < 0]
	return fmt.Sprintf(
		"this program (%s, definitions %s) is %s than the server (%s, definitions %s), whose judgement is shown",
		Version(),
		schema.SchemaVersion,
		word,
		cmp.Or(clean(server), "unknown"),
		cmp.Or(clean(definitions), "unknown"),
	)
}

// versionForm are versions of programs (v1.2.3, v1.2.3-rc1) and of definitions (v1, v1beta2).
var versionForm = regexp.MustCompile(`^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-?([a-z]+)\.?(\d*))?$`)

// compareVersions orders two versions, and is 0 for those that say no order, such as builds of a commit.
func compareVersions(a, b string) int {
	x, y := versionForm.FindStringSubmatch(a), versionForm.FindStringSubmatch(b)
	if x == nil || y == nil {
		return 0
	}

	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for i := 1; i <= 3; i++ {
		if c := number(x[i]) - number(y[i]); c != 0 {
			return c
		}
	}

	if (x[4] == "") != (y[4] == "") { // a release comes after what led to it
		return map[bool]int{true: 1, false: -1}[x[4] == ""]
	}

	return cmp.Or(strings.Compare(x[4], y[4]), number(x[5])-number(y[5]))
}
