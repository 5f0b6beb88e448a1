package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"

	"millwright/cmd/settings"

	apps "k8s.io/api/apps/v1"

	core "k8s.io/api/core/v1"

	networking "k8s.io/api/networking/v1"

	policy "k8s.io/api/policy/v1"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"millwright/state/statetest"
)

const deployDir = "../../deploy"

func deployed(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// strict decodes one document into the API's own type, and refuses what that has no field for.
func strict[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict(text, &v); err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	return v
}

// manifests are the Kubernetes resources, by kind and name.
type manifests struct {
	pods     map[string]core.PodTemplateSpec
	services []core.Service
	budgets  []policy.PodDisruptionBudget
	policies []networking.NetworkPolicy
}

func readManifests(t *testing.T) manifests {
	t.Helper()
	texts := map[string][]byte{}
	for _, file := range []string{"namespace.yaml", "server.yaml", "worker.yaml", "network.yaml"} {
		texts[file] = deployed(t, "kubernetes/"+file)
	}
	return decodeManifests(t, texts)
}

// decodeManifests decodes manifests strictly with the API's types, and refuses kinds that it does not know.
func decodeManifests(t *testing.T, texts map[string][]byte) manifests {
	t.Helper()
	m := manifests{pods: map[string]core.PodTemplateSpec{}}
	for file, text := range texts {
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			var any unstructured.Unstructured
			if err := yaml.Unmarshal(doc, &any.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch any.GetAPIVersion() + " " + any.GetKind() {
			case "v1 Namespace":
				strict[core.Namespace](t, doc)
			case "v1 ConfigMap":
				strict[core.ConfigMap](t, doc)
			case "apps/v1 StatefulSet":
				s := strict[apps.StatefulSet](t, doc)
				if !reflect.DeepEqual(s.Spec.Selector.MatchLabels, s.Spec.Template.Labels) {
					t.Errorf("%s selects other pods than its own", s.Name)
				}
				m.pods[s.Name] = s.Spec.Template
			case "apps/v1 Deployment":
				d := strict[apps.Deployment](t, doc)
				if !reflect.DeepEqual(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
					t.Errorf("%s selects other pods than its own", d.Name)
				}
				m.pods[d.Name] = d.Spec.Template
			case "v1 Service":
				m.services = append(m.services, strict[core.Service](t, doc))
			case "policy/v1 PodDisruptionBudget":
				m.budgets = append(m.budgets, strict[policy.PodDisruptionBudget](t, doc))
			case "networking.k8s.io/v1 NetworkPolicy":
				m.policies = append(m.policies, strict[networking.NetworkPolicy](t, doc))
			default:
				t.Errorf("%s: nothing checks %s %s", file, any.GetAPIVersion(), any.GetKind())
			}
		}
	}
	return m
}

// TestKubernetesManifests decodes the manifests strictly with the API's types, and holds them to what they
// promise: no root, nothing writable, no secret by value, probes, a budget for each, references that exist.
func TestKubernetesManifests(t *testing.T) {
	m := readManifests(t)
	ports := map[string]bool{}
	for name, pod := range m.pods {
		s := pod.Spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("%s: the pod may be root, or has a token of the cluster", name)
		}
		var volumes []string
		for _, v := range pod.Spec.Volumes {
			volumes = append(volumes, v.Name)
		}
		for _, c := range pod.Spec.Containers {
			s := c.SecurityContext
			if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") {
				t.Errorf("%s: the container has rights that it does not need", name)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: no limit of memory or no request of processors", name)
			}
			for _, e := range c.Env {
				if regexp.MustCompile(`(?i)key$|password|token|secret|state`).MatchString(e.Name) && e.ValueFrom == nil {
					t.Errorf("%s: %s is there by value", name, e.Name)
				}
				if e.Name == "MILLWRIGHT_NATS_CLUSTER" && !strings.HasPrefix(e.Value, "$(POD_NAME):") {
					t.Errorf("%s: its own address is one that only a name server knows, and that only after it has begun", name)
				}
			}
			for _, v := range c.VolumeMounts {
				if !slices.Contains(volumes, v.Name) {
					t.Errorf("%s: there is no volume %s", name, v.Name)
				}
			}
			for _, p := range c.Ports {
				ports[p.Name] = true
			}
			if name == "millwright" && (c.LivenessProbe == nil || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.StartupProbe.HTTPGet.Path != "/healthz") {
				t.Errorf("%s: probes are missing", name)
			}
		}
		if !slices.ContainsFunc(m.budgets, func(b policy.PodDisruptionBudget) bool {
			return reflect.DeepEqual(b.Spec.Selector.MatchLabels, pod.Labels)
		}) {
			t.Errorf("%s has no disruption budget", name)
		}
		if !slices.ContainsFunc(m.policies, func(p networking.NetworkPolicy) bool {
			return reflect.DeepEqual(p.Spec.PodSelector.MatchLabels, pod.Labels)
		}) {
			t.Errorf("%s has no network policy", name)
		}
	}
	for _, s := range m.services {
		for _, p := range s.Spec.Ports {
			if !ports[p.TargetPort.String()] {
				t.Errorf("service %s: no container has the port %s", s.Name, p.TargetPort.String())
			}
		}
	}
	if len(m.pods) != 2 || len(m.services) != 2 {
		t.Errorf("%d workloads, %d services", len(m.pods), len(m.services))
	}
}

// TestAgentsManifest holds what a worker may do with harnesses' jobs to what it does, and closes the network.
func TestAgentsManifest(t *testing.T) {
	may := map[string][]string{}
	closed := map[networking.PolicyType]bool{}
	for _, doc := range bytes.Split(deployed(t, "kubernetes/agents.yaml"), []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "Namespace":
			if strict[core.Namespace](t, doc).Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				t.Error("pods may have more rights than they need")
			}
		case "ServiceAccount":
			strict[core.ServiceAccount](t, doc)
		case "Role":
			for _, rule := range strict[rbac.Role](t, doc).Rules {
				for _, resource := range rule.Resources {
					may[resource] = rule.Verbs
				}
			}
		case "RoleBinding":
			strict[rbac.RoleBinding](t, doc)
		case "NetworkPolicy":
			for _, direction := range strict[networking.NetworkPolicy](t, doc).Spec.PolicyTypes {
				closed[direction] = true
			}
		default:
			t.Errorf("nothing checks %s", kind.Kind)
		}
	}
	want := map[string][]string{
		"jobs": {"create", "get", "list", "watch", "delete"}, "pods": {"get", "list"}, "pods/attach": {"create"},
		"pods/exec": {"create"}, "pods/log": {"get"}, "secrets": {"create"},
	}
	if !reflect.DeepEqual(may, want) {
		t.Errorf("a worker may %v", may)
	}
	if !closed[networking.PolicyTypeIngress] || !closed[networking.PolicyTypeEgress] {
		t.Error("the network is open")
	}
}

// TestAcceptanceKustomize builds what kubectl apply -k would send.
func TestAcceptanceKustomize(t *testing.T) {
	out, err := exec.Command(statetest.Program(t, "kubectl"), "kustomize", filepath.Join(deployDir, "kubernetes")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"image: millwright:latest", "name: millwright-settings-", "namespace: millwright"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q", want)
		}
	}
}

// TestDeployedSettings reads the settings files of the deployments as the program does.
func TestDeployedSettings(t *testing.T) {
	for _, file := range []string{"kubernetes/server-settings.yaml", "kubernetes/worker-settings.yaml", "compose/millwright.yaml", "compose/worker.yaml"} {
		if _, err := settings.Read(filepath.Join(deployDir, file)); err != nil {
			t.Error(err)
		}
	}
}

// TestCompose checks the compose file against the published schema, and its references.
func TestCompose(t *testing.T) {
	text := deployed(t, "compose/compose.yaml")
	doc := strict[map[string]any](t, text)
	if err := schema.Validate(doc); err != nil {
		t.Fatal(err)
	}
	broken := strict[map[string]any](t, bytes.Replace(text, []byte("cap_drop"), []byte("capdrop"), 1))
	if schema.Validate(broken) == nil {
		t.Error("the schema takes what is no key")
	}
	declared, _ := doc["secrets"].(map[string]any)
	services, _ := doc["services"].(map[string]any)
	if len(services) != 3 {
		t.Errorf("services: %v", services)
	}
	for name, s := range services {
		used, _ := s.(map[string]any)["secrets"].([]any)
		for _, u := range used {
			if declared[fmt.Sprint(u)] == nil {
				t.Errorf("%s uses the secret %v, which is not declared", name, u)
			}
		}
	}
}

// TestAcceptanceSystemdUnit has systemd check the unit and judge how far it is closed.
func TestAcceptanceSystemdUnit(t *testing.T) {
	analyze := statetest.Program(t, "systemd-analyze")
	unit := bytes.ReplaceAll(deployed(t, "systemd/millwright.service"), []byte("/usr/local/bin/millwright"), []byte(os.Args[0]))
	file := filepath.Join(t.TempDir(), "millwright.service")
	if err := os.WriteFile(file, unit, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}

	dropIn := file + ".d/sandbox.conf"
	if err := errors.Join(os.Mkdir(filepath.Dir(dropIn), 0o755), os.WriteFile(dropIn, deployed(t, "systemd/sandbox.conf"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Dir(dropIn)); err != nil {
		t.Fatal(err)
	}

	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestContainerfile holds the image to what it promises.
func TestContainerfile(t *testing.T) {
	text := string(deployed(t, "Containerfile"))
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(gomod))[1]
	last := text[strings.LastIndex(text, "\nFROM "):]
	for _, want := range []string{"CGO_ENABLED=0", "golang:" + version + " "} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(last)
	if user == nil || user[1] == "0" || strings.Contains(last, "\nRUN ") || !strings.Contains(last, `ENTRYPOINT ["/usr/local/bin/millwright"]`) {
		t.Errorf("the last stage is not what it is to be:\n%s", last)
	}
}
