package runs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"millwright/runs/wire"
	"millwright/state"
	"millwright/state/statetest"
)

// leave executes the oldest queued run as a worker that leaves files: path and content in turn.
func (w *world) leave(files ...string) {
	w.t.Helper()
	c, err := w.d.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()

	var o *wire.Order
	for end := time.Now().Add(statetest.Patience); o == nil && time.Now().Before(end); {
		if o, err = c.Claim(w.t.Context(), "worker", time.Second); err != nil {
			w.t.Fatal(err)
		}
	}
	if o == nil {
		w.t.Fatal("no run is queued")
	}
	if _, err := c.Start(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}

	for i := 0; i < len(files); i += 2 {
		content := []byte(files[i+1])
		sum := sha256.Sum256(content)
		a := wire.Artifact{
			Kind: wire.ArtifactFile, Path: files[i], Size: int64(len(content)), Digest: hex.EncodeToString(sum[:]),
		}
		if err := c.PutArtifact(w.t.Context(), o, i/2, a, bytes.NewReader(content)); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := c.Finish(w.t.Context(), o, wire.Result{State: wire.Succeeded}); err != nil {
		w.t.Fatal(err)
	}
}

func TestArtifacts(t *testing.T) {
	each(t, func(w *world) {
		id := w.create(`{"prompt": "x"}`)
		if got := fmt.Sprint(w.get(id)["artifacts"]); got != "[]" {
			w.t.Errorf("artifacts of a queued run: %s", got)
		}

		page := "<script>alert(1)</script>" + strings.Repeat("ü", wire.Chunk)
		w.leave("out/größe \"1\".html", page, "shot", "GIF89a\x01\x00")
		for _, link := range []state.Artifact{
			{Type: state.ArtifactPullRequest, Repository: "acme/shop", Path: "https://git.example.com/acme/shop/pulls/7", Facts: state.ArtifactFacts{Branch: "agent/x", Status: "open"}},
			{Type: state.ArtifactReference, Path: "https://example.com/t/1", Facts: state.ArtifactFacts{ReferenceType: "ticket", Title: "T-1"}},
		} {
			if err := w.store.PutLink(w.t.Context(), id, link); err != nil {
				w.t.Fatal(err)
			}
		}

		items := w.get(id)["artifacts"].([]any)
		if len(items) != 4 {
			w.t.Fatalf("artifacts %v", items)
		}
		byType := map[string]map[string]any{}
		for _, item := range items {
			v := item.(map[string]any)
			byType[v["artifact_type"].(string)] = v["data"].(map[string]any)
		}
		for of, want := range map[string]string{
			"FILE":               "größe \"1\".html out/größe \"1\".html text/plain; charset=utf-8 " + fmt.Sprint(float64(len(page))),
			"SCREENSHOT":         "shot shot image/gif 8",
			"PULL_REQUEST":       "https://git.example.com/acme/shop/pulls/7 agent/x open acme/shop",
			"EXTERNAL_REFERENCE": "https://example.com/t/1 ticket T-1",
		} {
			var got []string
			for _, field := range []string{"filename", "filepath", "mime_type", "size_bytes", "url", "branch", "status", "reference_type", "title", "repository"} {
				if v := byType[of][field]; v != nil {
					got = append(got, fmt.Sprint(v))
				}
			}
			if strings.Join(got, " ") != want {
				w.t.Errorf("%s: %q, want %q", of, strings.Join(got, " "), want)
			}
		}

		uid := byType["FILE"]["artifact_uid"].(string)
		one := w.call(state.RoleViewer, "GET", "/agent/artifacts/"+uid, "").ok()
		data := one["data"].(map[string]any)
		if one["run_id"] != id || one["artifact_uid"] != uid || data["content_type"] != "text/plain; charset=utf-8" {
			w.t.Errorf("artifact %v", one)
		}
		if want := "https://mill.example.com/api/v1/agent/artifacts/" + uid + "/download"; data["download_url"] != want {
			w.t.Errorf("download_url %v, want %s", data["download_url"], want)
		}

		r := w.call(state.RoleViewer, "GET", "/agent/artifacts/"+uid+"/download", "")
		for name, want := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Length": fmt.Sprint(len(page)),
			"Content-Disposition": "attachment; filename*=utf-8''gr%C3%B6%C3%9Fe%20%221%22.html",
		} {
			if got := r.header.Get(name); got != want {
				w.t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if r.status != 200 || r.text != page {
			w.t.Errorf("download: %d, %d bytes", r.status, len(r.text))
		}
		if r := w.call(state.RoleViewer, "HEAD", "/agent/artifacts/"+uid+"/download", ""); r.status != 200 || r.text != "" {
			w.t.Errorf("HEAD: %d %q", r.status, r.text)
		}

		link := byType["PULL_REQUEST"]["artifact_uid"].(string)
		w.call(state.RoleViewer, "GET", "/agent/artifacts/"+link, "").ok()
		for _, missing := range []string{link + "/download", "x", "x/download", state.NewID(state.PrefixArtifact), "art_%00"} {
			w.call(state.RoleViewer, "GET", "/agent/artifacts/"+missing, "").problem(404, "resource_not_found", "")
		}
		w.call("", "GET", path.Join("/agent/artifacts", uid, "download"), "").problem(401, "authentication_required", "")

		other := w.create(`{"prompt": "y"}`)
		w.leave("notes.md", "x")
		for of, want := range map[string]string{"FILE": id + " " + other, "SCREENSHOT": id, "PULL_REQUEST": id, "PLAN": ""} {
			var got []string
			for _, r := range w.call(state.RoleViewer, "GET", "/agent/runs?sort_by=created_at&sort_order=asc&artifact_type="+of, "").ok()["runs"].([]any) {
				got = append(got, r.(map[string]any)["run_id"].(string))
			}
			if strings.Join(got, " ") != want {
				w.t.Errorf("artifact_type=%s: %v, want %s", of, got, want)
			}
		}
	})
}
