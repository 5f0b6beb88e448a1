package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"millwright/state"
	"millwright/state/statetest"
)

// leftBy executes a run that leaves files, and returns its page.
func (w *world) leftBy(b *browser, files ...state.Artifact) (id, page string, uids []string) {
	w.t.Helper()
	id = w.run("go").ID
	c := w.claimed(id)
	for i, f := range files {
		content := []byte(f.Digest)
		uids = append(uids, statetest.Leave(w.t, w.store, c, i, f, content).UID)
	}
	if _, err := w.store.FinishRun(w.t.Context(), c, state.Result{State: state.RunSucceeded}); err != nil {
		w.t.Fatal(err)
	}
	return id, b.page("/runs/" + id), uids
}

// changed is the patch of a repository; its bundle is not looked at.
func changed(repository, patch string) state.Artifact {
	return state.Artifact{Kind: state.KindPatch, Repository: repository, Path: "changes.patch", Digest: patch}
}

const smallPatch = `diff --git a/app/main.go b/app/main.go
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/app/main.go
+++ b/app/main.go
@@ -10,4 +10,4 @@ func main() {
 	one()
-	fmt.Println("<b>old</b>")
+	fmt.Println("<b>new</b>\x1b[31m\u202e")
 	three()
 	four()
diff --git a/logo.png b/logo.png
new file mode 100644
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
GIT binary patch
literal 3
Kc${Nk-T(jq0RR91

literal 0
Hc$@<O00001

diff --git "a/na\303\257ve\tname" b/plain
similarity index 100%
rename from "na\303\257ve\tname"
rename to plain
`

// TestChanges shows what a run left: the diff, files and links.
func TestChanges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		b := w.signedIn(state.RoleViewer)
		bundle := state.Artifact{Kind: state.KindBundle, Repository: "acme/shop", Path: "changes.bundle", Digest: "x", Facts: state.ArtifactFacts{Head: "h", Shown: true}}
		id, page, uids := w.leftBy(b, changed("acme/shop", smallPatch), bundle, state.Artifact{Path: "out/report <1>.html", Digest: "<script>alert(1)</script>"})
		says(t, page, "Changes of acme/shop", "3 files", "app/main.go", "fmt.Println(&#34;&lt;b&gt;old&lt;/b&gt;&#34;)",
			`&lt;b&gt;new&lt;/b&gt;\x1b[31m\u202e`, "line 10 func main() {", "A binary file", "from na\u00efve", "No lines changed",
			"out/report &lt;1&gt;.html", `href="/runs/`+id+`/artifacts/`+uids[2]+`"`)
		if strings.Contains(page, "<b>old") {
			t.Error("the page has the tags of a patch")
		}
		saysNot(t, page, "could not compare", "no bundle", "\x1b")

		a := b.get("/runs/" + id + "/artifacts/" + uids[2])
		if a.StatusCode != http.StatusOK || a.Text != "<script>alert(1)</script>" || a.Header.Get("Content-Type") != "application/octet-stream" ||
			!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("download: %d %q %v", a.StatusCode, a.Text, a.Header)
		}
		for _, path := range []string{"/runs/" + state.NewRunID() + "/artifacts/" + uids[2], "/runs/" + id + "/artifacts/art_x"} {
			if a := b.get(path); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
		}

		for _, link := range []state.Artifact{
			{Type: state.ArtifactPullRequest, Path: "https://git.example.com/acme/shop/pulls/7", Facts: state.ArtifactFacts{Status: "open"}},
			{Type: state.ArtifactReference, Path: "javascript:alert(1)", Facts: state.ArtifactFacts{Title: "<i>click</i>"}},
		} {
			if err := w.store.PutLink(t.Context(), id, link); err != nil {
				t.Fatal(err)
			}
		}
		page = b.page("/runs/" + id)
		says(t, page, `<a href="https://git.example.com/acme/shop/pulls/7" rel="noopener noreferrer">`, "javascript:alert(1)", "&lt;i&gt;click")
		saysNot(t, page, `href="javascript`)

		for _, path := range []string{"/", "/runs"} {
			page = b.page(path)
			says(t, page, `<a href="https://git.example.com/acme/shop/pulls/7" rel="noopener noreferrer">Pull request`, "open")
			saysNot(t, page, "javascript:alert(1)", "click")
		}
	})
}

// TestOddChanges shows patches that are large, cut or no patches, and ones without a bundle.
func TestOddChanges(t *testing.T) {
	w := newWorld(t, statetest.Open(t, statetest.SQLite(t)), "")
	b := w.signedIn(state.RoleViewer)
	file := func(name string, lines int) string {
		return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%[2]d @@\n", name, lines) +
			strings.Repeat("+a line\n", lines)
	}
	many := ""
	for i := range 300 {
		many += file(fmt.Sprint("f", i), 1)
	}
	for name, c := range map[string]struct {
		patch string
		says  []string
	}{
		"folded":   {file("long", 400), []string{`<details class="file-diff"><summary><code>long</code>`, "a line"}},
		"too long": {file("long", 2000) + file("short", 1), []string{"Too large to show here", "short"}},
		"many":     {many, []string{"200 and more files", "There are more changes than this page shows"}},
		"cut":      {file("first", 1) + file("second", 200_000), []string{"first", "There are more changes"}},
		"garbage":  {"garbage\x00\xff", []string{"Changes of acme/shop"}},
		"empty":    {"", []string{"Changes of acme/shop"}},
		"broken":   {file("first", 1) + "diff --git a/x b/x\n@@ -1 +1 @@\n-x", []string{"first"}},
		"wide":     {"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+" + strings.Repeat("w", 5000) + "\n\\ No newline at end of file\n", []string{"5.0 kB in all"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, page, _ := w.leftBy(b, changed("acme/shop", c.patch))
			says(t, page, append(c.says, "There is no bundle of these changes")...)
			if len(page) > 2<<20 {
				t.Errorf("a page of %d bytes", len(page))
			}
		})
	}
	bundle := state.Artifact{Kind: state.KindBundle, Repository: "a/b", Path: "changes.bundle", Digest: "x", Facts: state.ArtifactFacts{Head: "h"}}
	_, page, _ := w.leftBy(b, bundle)
	says(t, page, "There is no patch that shows the changes")
	_, page, _ = w.leftBy(b, bundle, changed("a/b", smallPatch))
	says(t, page, "could not compare the patch with the bundle")
}
