package provider

import (
	"strconv"
	"strings"
)

// Target is what a delivery is about: a repository, and in it an issue, a pull request or a commit. What the
// payload does not say is zero. A payload is what its sender says: nothing of it is proven.
type Target struct {
	Repository string // its full name, such as owner/name
	Number     int    // of the issue or pull request
	IsPull     bool   // Number is that of a pull request, or a merge request
	Commit     string // the head of the pull request, or the pushed or checked commit
	Branch     string // of Commit
	BaseBranch string // of a pull request
	// HeadRepository is the full name of the repository that Commit is in. It is "" for one that is gone and
	// where the payload does not name it.
	HeadRepository string
}

// Target returns what a delivery is about. It reads the shape of the payload and not the event. Deliveries of
// senders other than forges have no target.
func (d *Delivery) Target() Target {
	if d == nil {
		return Target{}
	}

	switch d.table.provider {
	case GitHub:
		return githubTarget(&d.body)
	case GitLab:
		return gitlabTarget(&d.body)
	}

	return Target{}
}

func githubTarget(b *body) Target {
	t := Target{Repository: b.string("repository.full_name")}
	if b.has("pull_request") {
		t.pull(b, "pull_request")
		return t
	}

	for _, check := range []string{"workflow_run", "check_suite", "check_run"} {
		if b.has(check) {
			t.check(b, check)
			return t
		}
	}

	switch {
	case b.has("issue"):
		t.Number, t.IsPull = b.integer("issue.number"), ofPull(b)
	case b.string("ref") != "" && b.list("commits"):
		t.push(b)
	case b.has("deployment"):
		t.Commit, t.HeadRepository = commit(b.string("deployment.sha")), t.Repository
	case commit(b.string("sha")) != "": // a status
		t.Commit = commit(b.string("sha"))
	}

	return t
}

// pull reads the pull request at a path.
func (t *Target) pull(b *body, path string) {
	t.Number, t.IsPull = b.integer(path+".number"), true
	t.Commit, t.Branch = commit(b.string(path+".head.sha")), b.string(path+".head.ref")
	t.BaseBranch, t.HeadRepository = b.string(path+".base.ref"), b.string(path+".head.repo.full_name")
}

// check reads a workflow run, a check suite, or a check run with its suite.
func (t *Target) check(b *body, path string) {
	t.Commit, t.Branch = commit(b.string(path+".head_sha")), b.string(path+".head_branch")
	if path == "check_run" {
		t.Branch = b.string(path + ".check_suite.head_branch")
	}

	t.HeadRepository = b.string(path + ".head_repository.full_name")
	eachObject(b, path+".pull_requests", func(pull *body) bool {
		t.Number, t.IsPull = pull.integer("number"), true
		t.BaseBranch = pull.string("base.ref")
		return false
	})
}

// push reads a push.
func (t *Target) push(b *body) {
	if !isPush(b) {
		return
	}
	t.Commit, t.HeadRepository = commit(b.string("after")), t.Repository
	if ref := b.string("ref"); strings.HasPrefix(ref, heads) {
		t.Branch = ref[len(heads):]
	}
}

func gitlabTarget(b *body) Target {
	t := Target{Repository: b.string("project.path_with_namespace")}
	merge := "merge_request"
	if b.string("object_kind") == "merge_request" {
		merge = "object_attributes"
	}

	switch {
	case b.has(merge):
		t.Number, t.IsPull = b.integer(merge+".iid"), true
		t.Commit, t.Branch = commit(b.string(merge+".last_commit.id")), b.string(merge+".source_branch")
		t.BaseBranch = b.string(merge + ".target_branch")
		t.HeadRepository = b.string(merge + ".source.path_with_namespace")
	case b.has("issue"):
		t.Number = b.integer("issue.iid")
	case b.string("object_kind") == "issue":
		t.Number = b.integer("object_attributes.iid")
	case b.string("object_kind") == "push" || b.string("object_kind") == "tag_push":
		t.push(b)
	case b.string("object_kind") == "pipeline":
		t.Commit, t.Branch = commit(b.string("object_attributes.sha")), b.string("object_attributes.ref")
	}

	return t
}

// integer returns the whole positive number at a path; 0 for what is none.
func (b *body) integer(path string) int {
	n, err := strconv.Atoi(scalar(b.at(path)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// commit returns the ID of a commit, "" for what is none.
func commit(id string) string {
	if len(id) < 40 || len(id) > 64 || zeroCommit(id) || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}
