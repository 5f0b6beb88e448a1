package admin_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millwright/admin"
	"millwright/state"
)

func (o *ops) importFiles(q string, files map[string]string) *reply {
	o.t.Helper()
	var list []map[string]string
	for path, content := range files {
		list = append(list, map[string]string{"path": path, "content": content})
	}
	return o.call(state.RoleAdmin, "PUT", o.in+"/files"+q, string(mustJSON(map[string]any{"files": list})))
}

func (o *ops) hooks() []string {
	o.t.Helper()
	return o.all(o.in+"/webhooks", "webhooks", "name", 500)
}

func TestManagedFiles(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.secret("A", "value")
		if r := o.call(state.RoleViewer, "GET", o.in+"/files", "").want(200); r.at("revision") != "r0" {
			t.Errorf("before the first edit: %s", r.body)
		}
		r := o.put("webhooks/a.yaml", "# ours\nsecretName: A # the one\n").want(200)
		if r.at("outcome") != "applied" || r.at("revision") != "r1" || r.at("author") != "admin" || r.at("subject") != "write webhooks/a.yaml" {
			t.Errorf("put: %s", r.body)
		}
		uid := o.hooksOf(state.Factory{UID: o.uid})["a"].UID
		// An edit through a form keeps what people wrote in the file.
		o.call(state.RoleAdmin, "PATCH", o.in+"/webhooks/"+uid, `{"enabled": false}`).want(200)
		if got, want := o.file("webhooks/a.yaml"), "# ours\nsecretName: A # the one\nenabled: false\n"; got != want {
			t.Errorf("file %q, want %q", got, want)
		}
		r = o.put("automations/ci/automation.md", "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter: {webhook_ids: ["+uid+"]}\n---\n\nLook.\n").want(200)
		if r.at("counts", "created") == nil {
			t.Errorf("put: %s", r.body)
		}
		if got := o.all(o.in+"/automations", "automations", "name", 500); !slices.Equal(got, []string{"ci"}) {
			t.Errorf("automations %v", got)
		}
		r = o.put("README.md", "Hello.\n").want(200)
		if r.at("revision") != "r4" || r.at("source", "kind") != "managed" {
			t.Errorf("a file that says nothing: %s", r.body)
		}
		if r := o.put("README.md", "Hello.\n").want(200); r.at("revision") != "r4" || r.at("outcome") != "unchanged" {
			t.Errorf("the same again: %s", r.body)
		}
		r = o.call(state.RoleViewer, "GET", o.in+"/files?limit=2", "").want(200)
		r.hasKeys("revision files page_info")
		r.length(2, "files")
		if r.at("revision") != "r4" || r.at("files", 0, "path") != "README.md" || r.at("files", 1, "path") != "automations/ci/automation.md" {
			t.Errorf("files: %s", r.body)
		}
		r = o.call(state.RoleViewer, "GET", o.in+"/files?limit=2&cursor="+o.text(r, "page_info", "next_cursor"), "").want(200)
		if r.length(1, "files"); r.at("files", 0, "path") != "webhooks/a.yaml" || r.at("page_info", "has_next_page") != false {
			t.Errorf("the rest: %s", r.body)
		}
		if got := o.call(state.RoleAdmin, "GET", o.in+"/files/webhooks/a.yaml?revision=r1", "").want(200); got.at("content") != "# ours\nsecretName: A # the one\n" || got.at("revision") != "r1" {
			t.Errorf("earlier: %s", got.body)
		}
		o.call(state.RoleAdmin, "DELETE", o.in+"/files/README.md", "").want(200)
		if o.file("README.md") != "" {
			t.Error("the file is still there")
		}

		// Reading what files say needs more than looking at lists: they may spell out what plans mask.
		for _, path := range []string{"/files/webhooks/a.yaml", "/files.tar", "/revisions/r1"} {
			o.call(state.RoleRunner, "GET", o.in+path, "").problem(403, "not_authorized")
		}
		for _, c := range []struct {
			status       int
			method, path string
			body         string
		}{
			{404, "GET", "/files/webhooks/b.yaml", ""},
			{404, "GET", "/files/webhooks/a.yaml?revision=r99", ""},
			{404, "GET", "/files?revision=latest", ""},
			{404, "GET", "/revisions/r99", ""},
			{404, "GET", "/revisions/r0", ""},
			{404, "POST", "/revisions/r99/restore", ""},
			{404, "DELETE", "/files/README.md", ""},
			{400, "PUT", "/files/a%2F..%2Fb", `{"content": "x"}`},
			{400, "PUT", "/files/a%5Cb", `{"content": "x"}`},
			{400, "PUT", "/files/" + strings.Repeat("a/", 32) + "b", `{"content": "x"}`},
			{400, "PUT", "/files/" + strings.Repeat("a", 1025), `{"content": "x"}`},
			{400, "PUT", "/files/webhooks", `{"content": "x"}`},
			{400, "PUT", "/files/README.md", `{}`},
			{400, "PUT", "/files/README.md", `{"content": 1}`},
			{400, "PUT", "/files/README.md", `{"content": "` + strings.Repeat("x", 256<<10+1) + `"}`},
			{400, "PUT", "/files/README.md?base_revision=12", `{"content": "x"}`},
			{400, "GET", "/revisions?cursor=x", ""},
		} {
			r := o.refused(c.status, map[int]string{400: "invalid_request", 404: "resource_not_found"}[c.status], c.method, o.in+c.path, c.body)
			if len(r.body) > 8<<10 {
				t.Errorf("%s %.60s: an answer of %d bytes", c.method, c.path, len(r.body))
			}
		}
		// A definition with errors changes nothing, and the errors say where they are.
		r = o.refused(400, "invalid_request", "PUT", o.in+"/files/webhooks/a.yaml", `{"content": "secretName: B\nenable: true\n"}`)
		var fields []string
		for i := range r.at("errors").([]any) {
			fields = append(fields, o.text(r, "errors", i, "field"))
		}
		if want := []string{"webhooks/a.yaml:1:13", "webhooks/a.yaml:2:1"}; !slices.Equal(fields, want) {
			t.Errorf("fields %v, want %v: %s", fields, want, r.body)
		}
		o.refused(400, "invalid_request", "PUT", o.in+"/files/webhooks/b.yml", `{"content": "secretName: A\n"}`)
		if r := o.refused(400, "invalid_request", "PUT", o.in+"/files", `{}`); !strings.Contains(string(r.body), "files") {
			t.Errorf("import of nothing: %s", r.body)
		}
	})
}

func TestManagedHistory(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.secret("A", "value")
		two := map[string]string{"webhooks/a.yaml": "secretName: A\n", "webhooks/b.yaml": "secretName: A\nenabled: false\n", "NOTES": "x"}
		o.importFiles("", two).want(200)
		o.put("webhooks/b.yaml", "secretName: A\ndeliveryIdHeader: X-B\n").want(200)
		uid := o.hooksOf(state.Factory{UID: o.uid})["b"].UID
		o.importFiles("", map[string]string{"webhooks/a.yaml": "secretName: A\n", "webhooks/c.yaml": "secretName: A\nauthMode: url_token\n"}).want(200)
		r := o.call(state.RoleAdmin, "GET", o.in+"/revisions/r2", "").want(200)
		want := "--- a/webhooks/b.yaml\n+++ b/webhooks/b.yaml\n@@ -1,2 +1,2 @@\n secretName: A\n-enabled: false\n+deliveryIdHeader: X-B\n"
		if r.at("files", 0, "difference") != want || r.at("files", 0, "action") != "update" || r.at("files_changed").(interface{ String() string }).String() != "1" {
			t.Errorf("r2: %s", r.body)
		}
		r = o.call(state.RoleAdmin, "GET", o.in+"/revisions/r3", "").want(200)
		r.length(3, "files")
		for i, action := range []string{"delete", "delete", "create"} {
			if r.at("files", i, "action") != action {
				t.Errorf("r3, file %d: %s", i, r.body)
			}
		}
		if !strings.Contains(o.text(r, "files", 2, "difference"), "--- /dev/null\n+++ b/webhooks/c.yaml\n@@ -0,0 +1,2 @@\n+secretName: A\n+authMode: url_token\n") {
			t.Errorf("r3: %s", r.body)
		}
		if got := o.all(o.in+"/revisions", "revisions", "revision", 2); !slices.Equal(got, []string{"r3", "r2", "r1"}) {
			t.Errorf("revisions %v", got)
		}

		// The old files come back as a new revision, and a deleted webhook with its URL.
		r = o.call(state.RoleAdmin, "POST", o.in+"/revisions/r2/restore", "").want(200)
		if r.at("revision") != "r4" || r.at("subject") != "restore r2" || !slices.Equal(o.hooks(), []string{"a", "b"}) {
			t.Errorf("restore: %s %v", r.body, o.hooks())
		}
		if o.hooksOf(state.Factory{UID: o.uid})["b"].UID != uid {
			t.Error("the webhook got another UID")
		}
		if o.file("NOTES") != "x" {
			t.Error("a file is missing")
		}
		if r := o.call(state.RoleAdmin, "POST", o.in+"/revisions/r4/restore", "").want(200); r.at("revision") != "r4" || r.at("outcome") != "unchanged" {
			t.Errorf("restoring what is there: %s", r.body)
		}
		// The guards of an apply hold here too.
		r = o.refused(400, "invalid_request", "PUT", o.in+"/files", `{"files": []}`)
		if !strings.Contains(string(r.body), "prune-guard") {
			t.Errorf("deleting all: %s", r.body)
		}
		o.refused(400, "invalid_request", "PUT", o.in+"/files", `{"files": [{"path": "webhooks/a.yaml", "content": "secretName: A\n"}, {"path": "webhooks/z.yaml", "content": "secretName: A\ndeliveryIdHeader: X-B\n"}]}`)
		o.importFiles("?allow_rename=true", map[string]string{"webhooks/a.yaml": "secretName: A\n", "webhooks/z.yaml": "secretName: A\ndeliveryIdHeader: X-B\n"}).want(200)
		// A revision whose secret has gone cannot come back.
		o.importFiles("?allow_prune=true", nil).want(400) // null instead of a list
		o.call(state.RoleAdmin, "PUT", o.in+"/files?allow_prune=true", `{"files": []}`).want(200)
		o.call(state.RoleAdmin, "DELETE", "/secrets/A", "").want(204)
		r = o.refused(400, "invalid_request", "POST", o.in+"/revisions/r2/restore", "")
		if o.text(r, "errors", 0, "field") != "webhooks/a.yaml:1:13" || !strings.Contains(string(r.body), "secret-missing") {
			t.Errorf("restore without its secret: %s", r.body)
		}
	})
}

func TestManagedTar(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.secret("A", "value")
		files := map[string]string{"webhooks/a.yaml": "secretName: A\r\n", ".github/x.yml": "", "automations/é/notes.txt": "\u2028", "docs/" + strings.Repeat("long/", 28) + strings.Repeat("n", 200): "1"}
		o.importFiles("", files).want(200)
		res := o.raw("GET", o.in+"/files.tar", nil, 200)
		if diff := cmp.Diff(files, untar(t, res)); diff != "" {
			t.Errorf("exported (-want +got):\n%s", diff)
		}
		if again := o.raw("GET", o.in+"/files.tar", nil, 200); !bytes.Equal(again, res) {
			t.Error("the same revision makes another tar")
		}
		// Another server's factory takes it as it is, and exports the same.
		other := &ops{world: o.world}
		f := o.factory("copy", state.Source{Kind: "managed"}, nil)
		other.in, other.uid = "/factory/"+f.UID, f.UID
		o.raw("PUT", other.in+"/files.tar", res, 200)
		if diff := cmp.Diff(files, untar(t, o.raw("GET", other.in+"/files.tar?revision=r1", nil, 200))); diff != "" {
			t.Errorf("copied (-want +got):\n%s", diff)
		}
		if other.head().Tree != o.head().Tree {
			t.Error("two trees of the same files have different names")
		}

		pack := func(headers ...tar.Header) []byte {
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			for _, h := range headers {
				content := []byte(h.Linkname)
				if h.Typeflag == tar.TypeReg {
					h.Linkname, h.Size = "", int64(len(content))
				}
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Typeflag == tar.TypeReg {
					if _, err := w.Write(content); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		reg := func(name, content string) tar.Header {
			return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content, Mode: 0o755}
		}
		// A checkout as git archive and tar make it.
		o.raw("PUT", o.in+"/files.tar", pack(
			tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "0123456789"}},
			tar.Header{Typeflag: tar.TypeDir, Name: "./"}, tar.Header{Typeflag: tar.TypeDir, Name: "./webhooks/"},
			reg("./webhooks/a.yaml", "secretName: Z\n"), reg("./webhooks/a.yaml", "secretName: A\n"), reg("./.git/index", "\xff\x00"),
		), 200)
		if diff := cmp.Diff(map[string]string{"webhooks/a.yaml": "secretName: A\n"}, untar(t, o.raw("GET", o.in+"/files.tar", nil, 200))); diff != "" {
			t.Errorf("a checkout (-want +got):\n%s", diff)
		}
		before := o.everything()
		many := make([]tar.Header, 2001)
		for i := range many {
			many[i] = reg(fmt.Sprint("f", i), "")
		}
		big := make([]tar.Header, 33)
		for i := range big {
			big[i] = reg(fmt.Sprint("f", i), strings.Repeat("x", 256<<10))
		}
		for name, body := range map[string][]byte{
			"not a tar":           []byte("hello"),
			"half a tar":          res[:700],
			"a tar cut at a file": pack(reg("webhooks/a.yaml", "secretName: A\n"), reg("x", "y"))[:1024],
			"nothing":             {},
			"a link":              pack(tar.Header{Typeflag: tar.TypeSymlink, Name: "webhooks/a.yaml", Linkname: "/etc/passwd"}),
			"a hard link":         pack(reg("x", "y"), tar.Header{Typeflag: tar.TypeLink, Name: "webhooks/a.yaml", Linkname: "x"}),
			"a device":            pack(tar.Header{Typeflag: tar.TypeChar, Name: "x"}),
			"above the root":      pack(reg("../webhooks/a.yaml", "secretName: A\n")),
			"an absolute path":    pack(reg("/webhooks/a.yaml", "secretName: A\n")),
			"a file as a dir":     pack(reg("webhooks", ""), reg("webhooks/a.yaml", "secretName: A\n")),
			"not text":            pack(reg("logo.png", "\x89PNG\xff")),
			"a large file":        pack(reg("x", strings.Repeat("x", 256<<10+1))),
			"too many files":      pack(many...),
			"too many bytes":      pack(big...),
			"a refused tree":      pack(reg("webhooks/a.yaml", "secretName: NOWHERE\n")),
			"an unreadable path":  pack(reg("a\xff", "x")),
		} {
			answer := o.raw("PUT", o.in+"/files.tar", body, 400)
			if !bytes.Contains(answer, []byte(`"invalid_request"`)) || len(answer) > 4<<10 {
				t.Errorf("%s: %s", name, answer)
			}
		}
		o.raw("PUT", o.in+"/files.tar", bytes.Repeat([]byte{0}, 16<<20+1), 413)
		if after := o.everything(); after != before {
			t.Errorf("refused imports changed\n%s\nto\n%s", before, after)
		}
	})
}

// TestManagedEditsAtOnce lets editors on two servers of one state work at the same time. Whatever was
// answered 200 is there; whatever was not has changed nothing.
func TestManagedEditsAtOnce(t *testing.T) {
	eachOps(t, func(o *ops) {
		t := o.t
		servers := []*world{o.world, serve(t, o.store, admin.Config{})}
		if !o.store.Shared() {
			servers[1] = o.world // a SQLite state has one server
		}
		o.put("log.txt", "start\n").want(200)
		hook := o.in + "/webhooks/" + o.text(o.create(`{"name": "old"}`), "uid")
		var mu sync.Mutex
		made, wrote, gaveUp := map[string]bool{"old": true}, 0, 0
		var wg sync.WaitGroup
		for i := range 6 {
			w := servers[i%2]
			wg.Go(func() {
				name := fmt.Sprint("w", i)
				for _, c := range []struct{ method, path, body string }{
					{"POST", o.in + "/webhooks", `{"name": "` + name + `"}`},
					{"PATCH", hook, `{"delivery_id_header": "X-` + name + `"}`},
					{"PUT", o.in + "/files/log.txt?base_revision=r1", `{"content": "` + name + `"}`},
					{"PUT", o.in + "/files/" + name, `{"content": "` + name + `"}`},
				} {
					r := w.try(c.method, c.path, c.body)
					mu.Lock()
					switch {
					case r == http.StatusOK && c.method == "POST":
						made[name] = true
					case r == http.StatusOK && strings.Contains(c.path, "log.txt"):
						wrote++
					case r == http.StatusConflict:
						gaveUp++
					case r != http.StatusOK:
						t.Errorf("%s %s: %d", c.method, c.path, r)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		hooks := o.hooks()
		for name := range made {
			if !slices.Contains(hooks, name) {
				t.Errorf("webhook %s was made and is not there", name)
			}
		}
		if len(hooks) != len(made) || wrote != 1 {
			t.Errorf("webhooks %v, made %v; %d editors of r1 wrote the same file (%d conflicts)", hooks, made, wrote, gaveUp)
		}
		// Each revision is what its subject says on top of the one before.
		head := o.head().Number
		for n := int64(3); n <= head; n++ {
			changes, err := o.store.ManagedChanges(context.Background(), o.uid, n)
			if err != nil || len(changes) != 1 {
				t.Errorf("r%d changed %d files: %v", n, len(changes), err)
			}
		}
	})
}

// try sends a request as admin, and returns its status.
func (w *world) try(method, path, body string) int {
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+w.keys[state.RoleAdmin])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

func TestEditsOfAnEarlierRevision(t *testing.T) {
	eachOps(t, func(o *ops) {
		o.put("a", "1").want(200)                                                                           // r1
		o.put("b", "1").want(200)                                                                           // r2
		r := o.call(state.RoleAdmin, "PUT", o.in+"/files/a?base_revision=r1", `{"content": "2"}`).want(200) // only b changed since
		if r.at("revision") != "r3" {
			t.Errorf("%s", r.body)
		}
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "/files/a?base_revision=r2", `{"content": "3"}`},
			{"DELETE", "/files/a?base_revision=r1", ``},
			{"PUT", "/files/b?base_revision=r1", `{"content": "new?"}`},
			{"PUT", "/files/b?base_revision=r9", `{"content": "of the future"}`},
			{"PUT", "/files?base_revision=r2", `{"files": []}`},
			{"POST", "/revisions/r1/restore?base_revision=r2", ``},
		} {
			r := o.refused(409, "conflict", c.method, o.in+c.path, c.body)
			if r.at("retryable") != false || !strings.Contains(o.text(r, "detail"), "r3") {
				t.Errorf("%s %s: %s", c.method, c.path, r.body)
			}
		}
		o.call(state.RoleAdmin, "PUT", o.in+"/files/c?base_revision=r1", `{"content": "1"}`).want(200)
		o.call(state.RoleAdmin, "POST", o.in+"/revisions/r1/restore?base_revision=r4", ``).want(200)
		if o.file("a") != "1" || o.file("b") != "" {
			t.Error("not restored")
		}
	})
}
