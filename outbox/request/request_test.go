package request_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"millwright/outbox/request"
	"millwright/schema"
)

const secret = "s3cr3t-val/ue+with=signs"

var shop = request.Repository{Forge: "acme", Owner: "acme", Name: "shop"}

// work is an execution whose automation allows everything.
func work(lines ...string) request.Work {
	w := request.Work{
		Run:        "0197b3a0-0000-7000-8000-000000000001",
		Title:      "Mend the\nflaky test",
		Automation: "triage",
		Allowed: schema.Outputs{
			PullRequest: &schema.PullRequestOutput{Branch: schema.DefaultBranch, Draft: true, Labels: []string{"agent"}},
			Comment:     &schema.CommentOutput{Max: 1},
			Labels:      &schema.LabelsOutput{Allow: []string{"triaged", "bug"}, Max: 2},
			Review:      &schema.ReviewOutput{Max: 1, Events: []string{"COMMENT", "REQUEST_CHANGES"}},
		},
		Target:       request.Target{Repository: "Acme/Shop", Number: 7, Pull: true, At: shop},
		Repositories: []request.Checkout{{Repository: shop, BaseCommit: "b45e", BaseBranch: "main"}},
		Changes:      []request.Change{{Repository: shop, Bundle: "art_1", Head: "4ead"}},
		Secrets:      request.NewSecrets([]string{secret, "short", "line one is long\nline two is long"}),
	}
	for _, l := range lines {
		w.Lines = append(w.Lines, json.RawMessage(l))
	}
	return w
}

// said writes verdicts as "line type: outcome".
func said(all []request.Verdict) string {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "%d %s: ", v.Line, v.Type)
		switch {
		case v.Refuse != "":
			b.WriteString("refused: " + v.Refuse)
		case v.Staged != "":
			b.WriteString("staged: " + v.Staged)
		default:
			b.WriteString("pending")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestJudge holds what becomes of requests.
func TestJudge(t *testing.T) {
	body := func(text string) string {
		line, _ := json.Marshal(map[string]string{"type": "comment", "body": text})
		return string(line)
	}
	mentions := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "@person-%d, ", i)
		}
		return b.String()
	}

	for name, tt := range map[string]struct {
		lines  []string
		change func(*request.Work)
		want   string
	}{
		"all kinds": {lines: []string{
			`{"type": "pull_request", "title": "Mend", "body": "It was a race."}`,
			`{"type": "comment", "body": "Done."}`,
			`{"type": "label", "add": ["triaged"], "remove": ["bug"]}`,
			`{"type": "review", "event": "REQUEST_CHANGES", "body": "No.", "comments": [{"path": "a.go", "line": 3, "body": "Here."}]}`,
			`{"type": "reference", "url": "https://example.com/1", "title": "Trace"}`,
		}, want: "1 pull_request: pending\n2 comment: pending\n3 label: pending\n4 review: pending\n5 reference: pending\n"},

		"garbage": {lines: []string{
			`{"type": "comment"`, `[1]`, `"comment"`, `{"type": 5}`, `{"type": "comment", "body": ["x"]}`, `{}`,
			`{"type": "merge"}`, `{"type": "comment", "body": "  "}`, `{"type":"comment","body":"a"} {"type":"comment","body":"b"}`,
		}, want: "1 : refused: it is no JSON object\n2 : refused: it is no JSON object\n3 : refused: it is no JSON object\n" +
			"4 : refused: type cannot be a JSON number\n5 comment: refused: body cannot be a JSON array\n6 : refused: it has no type\n" +
			"7 : refused: the type \"merge\" is unknown: pull_request, comment, label, review or reference\n" +
			"8 comment: refused: body is missing\n9 comment: refused: it is more than one JSON object\n"},

		"more than allowed": {lines: []string{
			body("one"), body("two"), `{"type": "label", "add": ["triaged", "bug"]}`, `{"type": "label", "remove": ["bug"]}`,
			`{"type": "label", "add": ["release"]}`,
		}, want: "1 comment: pending\n2 comment: refused: an execution may have 1 of this kind\n3 label: pending\n" +
			"4 label: refused: an execution may have 2 of this kind\n5 label: refused: the label \"release\" is not among those allowed\n"},

		"a repository that is not declared": {lines: []string{
			`{"type": "pull_request", "repository": "acme/secrets"}`, `{"type": "comment", "repository": "other/shop", "body": "Hi"}`,
		}, want: "1 pull_request: refused: the factory does not have the repository acme/secrets\n" +
			"2 comment: refused: the delivery is about Acme/Shop, and not about other/shop\n"},

		"a delivery about a foreign repository": {
			lines:  []string{body("Hi")},
			change: func(w *request.Work) { w.Target.Repository, w.Target.At = "mallory/shop", request.Repository{} },
			want:   "1 comment: refused: the factory does not have the repository mallory/shop\n",
		},

		"a delivery of another forge": {
			lines:  []string{body("Hi")},
			change: func(w *request.Work) { w.Target.At.Forge = "other" },
			want:   "1 comment: refused: the factory does not have the repository Acme/Shop\n",
		},

		"a delivery about nothing": {
			lines:  []string{body("Hi"), `{"type": "review", "event": "COMMENT", "body": "Fine"}`},
			change: func(w *request.Work) { w.Target = request.Target{} },
			want: "1 comment: refused: the delivery names no issue or pull request\n" +
				"2 review: refused: the delivery names no issue or pull request\n",
		},

		"a review of an issue": {
			lines:  []string{`{"type": "review", "event": "COMMENT", "body": "Fine"}`},
			change: func(w *request.Work) { w.Target.Pull = false },
			want:   "1 review: refused: the delivery names no pull request\n",
		},

		"a review never approves": {lines: []string{
			`{"type": "review", "event": "APPROVE", "body": "Fine"}`, `{"type": "review", "body": "Fine"}`,
			`{"type": "review", "event": "approve", "body": "Fine"}`, `{"type": "review", "event": "COMMENT", "comments": [{"path": "a", "line": 0, "body": "x"}]}`,
		}, want: "1 review: refused: a review never approves\n2 review: refused: event is missing: COMMENT or REQUEST_CHANGES\n" +
			"3 review: refused: a review of this automation may be COMMENT or REQUEST_CHANGES, and not \"approve\"\n" +
			"4 review: refused: comments[0] needs a path, a line from 1 on and a body\n"},

		"mentions": {
			lines: []string{
				body(mentions(500)), body(mentions(6)), body("_@a_ _@b_ _@c_ _@d_ _@e_ _@f_"),
				body(mentions(5) + " a@example.com node_modules/@types/node"),
			},
			want: "1 comment: refused: it mentions 500 people: at most 5 are allowed\n" +
				"2 comment: refused: it mentions 6 people: at most 5 are allowed\n" +
				"3 comment: refused: it mentions 6 people: at most 5 are allowed\n4 comment: pending\n",
		},

		"secrets": {lines: []string{
			body("it is " + secret), body(base64.StdEncoding.EncodeToString([]byte("x" + secret))[4:]),
			body(base64.StdEncoding.EncodeToString([]byte(secret))), body(hex.EncodeToString([]byte(secret))), body("line two is long"),
			body("s3cr3t\u200b-val/ue+with=signs"), body("short is short"),
			`{"type": "review", "event": "COMMENT", "comments": [{"path": "a", "line": 1, "body": "` + secret + `"}]}`,
			`{"type": "reference", "title": "x", "url": "https://example.com/?k=s3cr3t-val%2Fue%2Bwith%3Dsigns"}`,
			body("Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret))),
			body("Basic " + base64.URLEncoding.EncodeToString([]byte("user:"+secret+"!"))),
		}, want: "1 comment: refused: its text has the value of a secret\n2 comment: pending\n" +
			"3 comment: refused: its text has the value of a secret\n4 comment: refused: its text has the value of a secret\n" +
			"5 comment: refused: its text has the value of a secret\n6 comment: refused: its text has the value of a secret\n" +
			"7 comment: refused: an execution may have 1 of this kind\n8 review: refused: its text has the value of a secret\n" +
			"9 reference: refused: its text has the value of a secret\n" +
			"10 comment: refused: its text has the value of a secret\n11 comment: refused: its text has the value of a secret\n"},

		"sizes": {lines: []string{
			body(strings.Repeat("x", 60_001)), `{"type": "pull_request", "title": "` + strings.Repeat("x", 251) + `"}`, body(strings.Repeat("x", 70_000)),
		}, want: "1 comment: refused: body has 60001 characters: at most 60000 are allowed\n" +
			"2 pull_request: refused: title has 251 characters: at most 250 are allowed\n" +
			"3 : refused: it has 70028 bytes: at most 65536 are allowed\n"},

		"a run that failed": {
			lines:  []string{body("Hi"), `{"type": "pull_request"}`, `{"type": "reference", "url": "https://example.com", "title": "x"}`},
			change: func(w *request.Work) { w.Ended = "FAILED" },
			want: "1 comment: refused: the run ended as FAILED: only runs that succeed have outputs\n" +
				"2 pull_request: refused: the run ended as FAILED: only runs that succeed have outputs\n3 reference: pending\n",
		},

		"no outputs": {
			lines:  []string{body("Hi"), `{"type": "pull_request"}`, `{"type": "label", "add": ["bug"]}`},
			change: func(w *request.Work) { w.Allowed = schema.Outputs{} },
			want: "1 comment: refused: the outputs of the automation do not allow comments\n" +
				"2 pull_request: refused: the outputs of the automation do not allow pull requests\n" +
				"3 label: refused: the outputs of the automation do not allow labels\n",
		},

		"approval": {
			lines:  []string{body("Hi"), `{"type": "pull_request"}`, `{"type": "reference", "url": "https://example.com", "title": "x"}`},
			change: func(w *request.Work) { w.Allowed.Approval = schema.ApprovalRequired },
			want: "1 comment: staged: the automation requires approval\n2 pull_request: staged: the automation requires approval\n" +
				"3 reference: pending\n",
		},

		"the commit of a fork": {
			lines:  []string{body("Hi"), `{"type": "pull_request"}`},
			change: func(w *request.Work) { w.Repositories[0].Untrusted = true },
			want: "1 comment: staged: the run started from the commit of a fork\n" +
				"2 pull_request: staged: the run started from the commit of a fork\n",
		},

		"the commit of a fork in another repository": {
			lines: []string{body("Hi")},
			change: func(w *request.Work) {
				fork := request.Checkout{Repository: request.Repository{Owner: "acme", Name: "tool"}, Untrusted: true}
				w.Repositories = append(w.Repositories, fork)
			},
			want: "1 comment: staged: the run started from the commit of a fork\n",
		},

		"nothing changed": {
			lines:  []string{`{"type": "pull_request"}`},
			change: func(w *request.Work) { w.Changes = nil },
			want:   "1 pull_request: refused: the run changed nothing that a pull request could have\n",
		},

		"two pull requests": {
			lines: []string{`{"type": "pull_request"}`, `{"type": "pull_request"}`},
			want:  "1 pull_request: pending\n2 pull_request: refused: an execution has one pull request in each repository\n",
		},

		"a follow-up goes on with its pull request": {
			change: func(w *request.Work) { w.Continues = []request.Repository{shop} },
			want:   "0 pull_request: pending\n",
		},

		"a follow-up that failed": {
			change: func(w *request.Work) { w.Continues, w.Ended = []request.Repository{shop}, "CANCELLED" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := work(tt.lines...)
			if tt.change != nil {
				tt.change(&w)
			}
			if got := said(request.Judge(w)); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestJudgeReadsSoManyLines holds that an agent cannot make the server judge without end.
func TestJudgeReadsSoManyLines(t *testing.T) {
	lines := make([]string, 3*request.MaxLines)
	for i := range lines {
		lines[i] = `{"type": "comment", "body": "x"}`
	}
	all := request.Judge(work(lines...))
	if len(all) != request.MaxLines+1 || !strings.Contains(all[request.MaxLines].Refuse, "at most 100 are read") {
		t.Errorf("%d verdicts, the last: %+v", len(all), all[len(all)-1])
	}
}

// TestPullRequest holds what a pull request has.
func TestPullRequest(t *testing.T) {
	w := work(`{"type": "pull_request", "body": "/merge"}`)
	got := request.Judge(w)[0].Act
	want := "Mend the flaky test|/\u200bmerge|main|b45e|agent/triage/" + w.Run + "|4ead|art_1|true|[agent]"
	if text := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%t|%s", got.Title, got.Body, got.Base, got.BaseCommit, got.Branch,
		got.Head, got.Bundle, got.Draft, got.Labels); text != want {
		t.Errorf("got  %q\nwant %q", text, want)
	}
	if got.Repository != shop {
		t.Errorf("repository %v", got.Repository)
	}
}

// TestNeutralise holds that no text that is sent commands a bot.
func TestNeutralise(t *testing.T) {
	const z = "\u200b"
	for in, want := range map[string]string{
		"/merge":                           "/" + z + "merge",
		"ok\n  /assign @me":                "ok\n  /" + z + "assign @me",
		"> /approve no-issue":              "> /" + z + "approve no-issue",
		"/usr/bin/env is a path":           "/usr/bin/env is a path",
		"see a/merge":                      "see a/merge",
		"atlantis apply":                   "a" + z + "tlantis apply",
		"bors r+":                          "b" + z + "ors r+",
		"please @dependabot rebase":        "please @" + z + "dependabot rebase",
		"@Renovate-bot and @renovate":      "@" + z + "Renovate-bot and @" + z + "renovate",
		"@some-app[bot] go":                "@" + z + "some-app[bot] go",
		"@alice reads":                     "@alice reads",
		"a <!-- millwright:out_1:ff -->":   "a <!-- millwright" + z + ":out_1:ff -->",
		"<!-- <!-- millwright:millwright:": "<!-- <!-- millwright" + z + ":millwright:",
		"one\r\n/merge":                    "one\n/" + z + "merge",
		"one\r/merge":                      "one\n/" + z + "merge",
		"one\u2028/merge":                  "one\n/" + z + "merge",
		"\u00a0/merge":                     "\u00a0/" + z + "merge",
		"\ufeff> /merge\u00a0squash":       "\ufeff> /" + z + "merge\u00a0squash",
		"/retest.":                         "/" + z + "retest.",
		"\u3000bors\u00a0r+":               "\u3000b" + z + "ors\u00a0r+",
	} {
		if got := request.Neutralise(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if once := request.Neutralise(in); request.Neutralise(once) != once {
			t.Errorf("%q: %q changes again", in, once)
		}
	}
}

// TestMarker holds that only the key makes the marker of an output.
func TestMarker(t *testing.T) {
	key, other := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("o", 32))
	text := request.Mark(key, "out_1", "Hi\n")
	if !request.Marked(key, "out_1", text) || request.Marked(key, "out_2", text) || request.Marked(other, "out_1", text) {
		t.Error(text)
	}
	if request.Marked(key, "out_1", request.Neutralise(text)) {
		t.Error("a copied marker survives")
	}

	forged := strings.Replace(request.Marker(other, "out_2"), "out_2", strings.Repeat("out", 40), 1)
	for in, want := range map[string]string{
		text: "out_1", text + "\nA line of a person": "out_1", "": "", "<!-- millwright:": "", "<!-- millwright:out_1:": "",
		text + forged + request.Marker(other, "out_2"): "out_1", request.Mark(key, "out_2", text): "out_2",
		request.Marker(other, "out_1"): "", text + strings.Repeat(forged, 100): "",
	} {
		if got := request.MarkerOf(key, in); got != want {
			t.Errorf("the marker of %q is of %q, want %q", in, got, want)
		}
	}
}

// TestRecheck holds that an output is performed by what the definition allows at that time.
func TestRecheck(t *testing.T) {
	w := work(`{"type": "pull_request", "title": "Mend"}`, `{"type": "comment", "body": "Hi"}`, `{"type": "label", "add": ["bug"]}`)
	all := request.Judge(w)
	for name, tt := range map[string]struct {
		change func(*schema.Outputs)
		at     int
		want   string
	}{
		"the same":       {func(*schema.Outputs) {}, 0, ""},
		"no comments":    {func(o *schema.Outputs) { o.Comment = nil }, 1, "the outputs of the automation do not allow comments"},
		"fewer labels":   {func(o *schema.Outputs) { o.Labels = &schema.LabelsOutput{Allow: []string{"x"}, Max: 1} }, 2, `the label "bug" is not among those allowed`},
		"another branch": {func(o *schema.Outputs) { o.PullRequest = &schema.PullRequestOutput{Branch: "bots/{run}"} }, 0, "the branch of this automation is now bots/" + w.Run},
		"another base": {func(o *schema.Outputs) {
			o.PullRequest = &schema.PullRequestOutput{Branch: schema.DefaultBranch, Base: "next"}
		}, 0, "the base of this automation is now next"},
	} {
		o := w.Allowed
		tt.change(&o)
		v := all[tt.at]
		if got := request.Recheck(o, "triage", w.Run, v.Type, v.Act, 1, w.Secrets); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := request.Recheck(w.Allowed, "triage", w.Run, "comment", all[1].Act, 2, w.Secrets); got == "" {
		t.Error("a second comment is allowed")
	}
	late := request.NewSecrets([]string{"Mend the flaky"})
	if got := request.Recheck(w.Allowed, "triage", w.Run, "comment", request.Act{Body: "Mend the flaky"}, 1, late); got == "" {
		t.Error("a text with a secret of today is sent")
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"type": "comment", "body": "/merge @alice"}`))
	f.Add([]byte(`{"type": "review", "event": "COMMENT", "comments": [{"path": "a", "line": 1, "body": "x"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, v := range request.Judge(work(string(line))) {
			if v.Refuse != "" {
				continue
			}
			if strings.Contains(v.Act.Body, "<!-- millwright:") || v.Act.Event == "APPROVE" {
				t.Errorf("%q: %+v", line, v)
			}
		}
	})
}
