package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"millwright/state/statetest"
)

// helm runs Helm on the chart, and returns what it printed.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program := os.Getenv("MILLWRIGHT_TEST_HELM")
	if program == "" {
		t.Skip("MILLWRIGHT_TEST_HELM is not set: .ci/helm sets it")
	}

	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, append(args, "--kube-version", "1.33")...)
	if args[0] == "lint" {
		cmd.Args = cmd.Args[:len(cmd.Args)-2]
	}
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// configName is the name of a ConfigMap with the hash of its contents.
var configName = regexp.MustCompile(`(millwright-settings)-[a-z0-9]{10}\b`)

// resources decodes manifests by kind and name, without what tools add to each.
func resources(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	text = configName.ReplaceAllString(text, "$1")
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		if len(v) == 0 || v["kind"] == "Namespace" {
			continue
		}

		meta, _ := v["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		delete(meta, "namespace")
		delete(labels, "helm.sh/chart")
		delete(labels, "app.kubernetes.io/managed-by")
		all[v["kind"].(string)+" "+meta["name"].(string)] = v
		decodeSettings(t, v)
		dropChecksum(v)
	}
	return all
}

// decodeSettings replaces the settings files of a ConfigMap by what they hold.
func decodeSettings(t *testing.T, v map[string]any) {
	t.Helper()
	data, _ := v["data"].(map[string]any)
	for name, text := range data {
		var decoded any
		if err := yaml.Unmarshal([]byte(text.(string)), &decoded); err != nil {
			t.Fatal(err)
		}
		data[name] = decoded
	}
}

// dropChecksum removes the annotation by which pods of the chart follow their settings.
func dropChecksum(v map[string]any) {
	spec, _ := v["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	meta, _ := template["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, "checksum/settings")
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// TestAcceptanceHelm checks that the chart is well made, that the API's types decode strictly what it makes, and
// that its defaults are the manifests of deploy/kubernetes.
func TestAcceptanceHelm(t *testing.T) {
	chart := filepath.Join(deployDir, "helm")
	if out, err := helm(t, "lint", "--strict", chart); err != nil {
		t.Errorf("lint: %v\n%s", err, out)
	}

	rendered, err := helm(t, "template", "millwright", chart)
	if err != nil {
		t.Fatalf("%v\n%s", err, rendered)
	}

	kubectl := exec.Command(statetest.Program(t, "kubectl"), "kustomize", filepath.Join(deployDir, "kubernetes"))
	var stderr bytes.Buffer
	kubectl.Stderr = &stderr
	manifests, err := kubectl.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if diff := cmp.Diff(resources(t, string(manifests)), resources(t, rendered)); diff != "" {
		t.Errorf("the chart differs from deploy/kubernetes (-manifests +chart):\n%s", diff)
	}

	one, err := helm(t, "template", "ops", chart, "--set", "server.replicas=1,worker.enabled=false,image.tag=1.2.3",
		"--set", "networkPolicy.enabled=false,secrets.state=dsn", "--set", "settings.publicUrl=https://h.example.com")
	if err != nil {
		t.Fatalf("%v\n%s", err, one)
	}
	for _, want := range []string{
		"value: $(POD_NAME):6222,ops-0.ops-peers:6222\n", `image: "millwright:1.2.3"`, "name: dsn, key: dsn",
		"publicUrl: https://h.example.com", "secretName: ops-tls",
	} {
		if !strings.Contains(one, want) {
			t.Errorf("there is no %q:\n%s", want, one)
		}
	}
	decodeManifests(t, map[string][]byte{"defaults": []byte(rendered), "one server": []byte(one)})
	for _, not := range []string{"kind: Deployment", "kind: NetworkPolicy"} {
		if strings.Contains(one, not) {
			t.Errorf("there is %q", not)
		}
	}

	for wrong, want := range map[string]string{
		"sever.replicas=1":           "additional properties 'sever'",
		"server.replicas=0":          "/server/replicas",
		"settings.publicUrl=example": "/settings/publicUrl",
		"image.pullPolicy=Sometimes": "/image/pullPolicy",
	} {
		if out, err := helm(t, "template", "millwright", chart, "--set", wrong); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want an error about %s:\n%s", wrong, err, want, out)
		}
	}
}
