package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"millwright/cmd/cli"
	"millwright/cmd/server"
	"millwright/cmd/settings"
	"millwright/runs/worker/sandbox"
	"millwright/state/statetest"
)

// runMain names the variable that makes the test binary the program.
const runMain = "MILLWRIGHT_TEST_RUN_MAIN"

// TestMain lets the scripts run the program, and a small curl for the lines that the program prints.
func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" || len(os.Args) > 1 && (os.Args[1] == server.KeepRun || os.Args[1] == server.EnterSandbox) {
		main()
	}
	testscript.Main(outsideTmp{m}, map[string]func(){
		"millwright": main,
		"curl":       func() { os.Exit(curl(os.Args[1:], os.Stdout, os.Stderr)) },
		"figures":    func() { os.Exit(figures(os.Stdout, os.Stderr)) },
		"editor":     func() { os.Exit(scriptEditor(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// outsideTmp runs the tests with temporary directories outside /tmp: where runs have a /tmp of their own,
// what a test shares with a harness has to lie elsewhere.
type outsideTmp struct{ *testing.M }

// Run runs the tests and returns their exit status.
func (m outsideTmp) Run() int {
	dir, err := os.MkdirTemp("/var/lib", "millwright-test-")
	if err != nil { // not root: runs share /tmp
		return m.M.Run()
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o711)
	os.Setenv("TMPDIR", dir)
	return m.M.Run()
}

// TestScripts runs the stories of testdata/scripts against the real program. Each gets a port of its own
// in $PORT, its server's URL in $MILLWRIGHT_SERVER, and its state in $WORK/.millwright.
func TestScripts(t *testing.T) {
	dir, err := filepath.Abs("../../testdata/scripts")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scriptParams(dir))
}

// scriptParams are how the scripts of a directory run.
func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			port, err := statetest.FreePort()
			if err != nil {
				return err
			}
			env.Values[signInKey] = &signIn{}
			env.Setenv("PORT", port)
			env.Setenv("MILLWRIGHT_LISTEN", "127.0.0.1:"+port)
			env.Setenv("MILLWRIGHT_SERVER", "http://127.0.0.1:"+port)
			env.Setenv("MILLWRIGHT_PUBLIC_URL", "http://127.0.0.1:"+port)
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
			env.Setenv("GIT_AUTHOR_NAME", "Ada")
			env.Setenv("GIT_AUTHOR_EMAIL", "ada@example.com")
			env.Setenv("GIT_COMMITTER_NAME", "Ada")
			env.Setenv("GIT_COMMITTER_EMAIL", "ada@example.com")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "postgres":
				return os.Getenv(statetest.Variable) != "", nil
			case "sandboxes":
				_, err := sandbox.Open()
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"post":       cmdPost,
			"api":        cmdAPI,
			"setenv":     cmdSetenv,
			"repeat":     cmdRepeat,
			"eventually": cmdEventually,
			"fill":       cmdFill,
			"exits":      cmdExits,
			"sign":       cmdSign,
			"receiver":   cmdReceiver,
			"forge":      cmdForge,
			"issuer":     cmdIssuer,
			"visit":      cmdVisit,
		},
	}
}

// cmdPost sends a delivery: post STATUS URL BODY [HEADER …]. The answer is the command's output.
func cmdPost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: post STATUS URL BODY [HEADER …]")
	}
	body := args[2]
	if name, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(name)
	}
	req, err := http.NewRequest(http.MethodPost, args[1], strings.NewReader(body))
	ts.Check(err)
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", answer)
	if retry := resp.Header.Get("Retry-After"); retry != "" {
		fmt.Fprintf(ts.Stdout(), "Retry-After: %s\n", retry)
	}
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("status %s, want %s: %s", got, args[0], answer)
	}
}

// cmdAPI calls the API with the admin key: api STATUS METHOD PATH [BODY]. The answer is the command's output.
func cmdAPI(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: api STATUS METHOD PATH [BODY]")
	}
	body := ""
	if len(args) > 3 {
		body = args[3]
	}
	if name, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(name)
	}
	req, err := http.NewRequest(args[1], ts.Getenv("MILLWRIGHT_SERVER")+"/api/v1"+args[2], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(".millwright/admin-key")))
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(answer)
	ts.Check(err)
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("status %s, want %s: %s", got, args[0], answer)
	}
}

// cmdSetenv keeps what a pattern finds in a file or in stdout: setenv NAME FILE PATTERN. The first group
// is the value.
func cmdSetenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setenv NAME FILE|stdout PATTERN")
	}
	m := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if len(m) < 2 {
		ts.Fatalf("%s has nothing like %s:\n%s", args[1], args[2], ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], m[1])
}

// cmdSign keeps the signature that GitHub gives a body under a secret: sign NAME SECRET BODY.
func cmdSign(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sign NAME SECRET BODY")
	}
	mac := hmac.New(sha256.New, []byte(args[1]))
	mac.Write([]byte(args[2]))
	ts.Setenv(args[0], "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// cmdRepeat posts many deliveries with bodies of their own: repeat N STATUS URL [HEADER …].
func cmdRepeat(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		cmdPost(ts, neg, append([]string{args[1], args[2], fmt.Sprintf(`{"n": %d}`, i)}, args[3:]...))
	}
}

// cmdExits runs a command that must end with a status: exits STATUS COMMAND [ARG …].
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG …]")
	}
	got := 0
	var exited *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exited) {
		got = exited.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("status %d, want %s", got, args[0])
	}
}

// cmdFill writes a file of exactly so many bytes, a JSON string: fill FILE BYTES.
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`"`+strings.Repeat("a", n-2)+`"`), 0o644))
}

// cmdEventually runs a command until its output has a pattern: eventually PATTERN COMMAND [ARG …]. The pauses
// grow: to start the program costs more than most of what scripts wait for.
func cmdEventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN COMMAND [ARG …]")
	}
	pattern := regexp.MustCompile(args[0])
	late := time.After(statetest.Patience)
	for pause := 25 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if pattern.MatchString(out) != neg {
			return
		}

		select {
		case <-late:
			ts.Fatalf("%s never said %s; at last (%v):\n%s", strings.Join(args[1:], " "), args[0], err, out)
		case <-time.After(pause):
		}
	}
}

// figures prints the server's metrics, asked for with the admin key.
func figures(out, errw io.Writer) int {
	req, err := http.NewRequest(http.MethodGet, os.Getenv("MILLWRIGHT_SERVER")+"/metrics", nil)
	if err == nil {
		key, _ := os.ReadFile(".millwright/admin-key")
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
		var resp *http.Response
		if resp, err = http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			_, err = io.Copy(out, resp.Body)
		}
	}
	if err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

// curl does what the lines need that the program prints: -i, -H and -d; and -G, which gets.
func curl(args []string, out, errw io.Writer) int {
	var url, body string
	method, header := http.MethodPost, http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-i":
		case "-G":
			method = http.MethodGet
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Add(name, value)
		case "-d":
			i++
			body = args[i]
		default:
			url = args[i]
		}
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err == nil {
		req.Header = header
		var resp *http.Response
		if resp, err = http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			fmt.Fprintln(out, resp.Status)
			_, err = io.Copy(out, resp.Body)
		}
	}
	if err != nil {
		fmt.Fprintln(errw, err)
		return 1
	}
	return 0
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serv"}, "serve"},
		{[]string{"check"}, "validate"},
		{[]string{"serve", "--dri", "x"}, "did you mean --dir?"},
		{[]string{"serve", "--listne=:1"}, "did you mean --listen?"},
		{[]string{"run", "lst"}, "list"},
		{[]string{"serve"}, "nothing to serve"},
		{[]string{"secret", "set"}, "SECRET is missing"},
		{[]string{"run", "get"}, "RUN is missing: want millwright run get RUN"},
		{[]string{"run", "followup", "x"}, "MESSAGE is missing"},
		{[]string{"run", "cancel", "x", "y"}, `unexpected argument "y"`},
		{[]string{"status", "--server", "ftp://x"}, "want a URL"},
		{[]string{"run", "list", "-o", "xml"}, "want table, json or yaml"},
		{[]string{"serve", "--dir", "x", "--log-level", "loud"}, "want debug, info, warn or error"},
	} {
		var out, errw bytes.Buffer
		if got := run(t.Context(), c.args, strings.NewReader(""), &out, &errw); got != cli.ExitUsage {
			t.Errorf("%v: status %d, want %d", c.args, got, cli.ExitUsage)
		}
		if !strings.Contains(errw.String(), c.want) {
			t.Errorf("%v: %q does not say %q", c.args, errw.String(), c.want)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"run", "list"}, {"sync"}, {"webhook", "list"}} {
		var out, errw bytes.Buffer
		if got := run(t.Context(), append(args, "--server", "http://127.0.0.1:"+port), nil, &out, &errw); got != cli.ExitUnreachable {
			t.Errorf("%v: status %d, want %d: %s", args, got, cli.ExitUnreachable, errw.String())
		}
	}
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"unknown key":     {"lisen: 127.0.0.1:1\n", "yaml:1:1: unknown key lisen: did you mean listen?"},
		"nested":          {"factories:\n  - name: a\n    source: {dirr: x}\n", "unknown key factories[0].source.dirr: did you mean dir?"},
		"wrong type":      {"grace: 1s\nworkers: many\n", "yaml:2:10: workers: want a whole number, not string"},
		"duplicate key":   {"listen: a:1\nlisten: b:1\n", "already"},
		"bad duration":    {"grace: soon\n", "yaml:1:8: grace: \"soon\" is not a duration"},
		"bad size":        {"limits: {inFlightBytes: lots}\n", "size"},
		"bad proxy":       {"trustedProxies: [everyone]\n", "everyone"},
		"two sources":     {"factories:\n  - name: a\n    source: {dir: x, managed: {}}\n", "exactly one"},
		"same name twice": {"factories:\n  - {name: a, source: {dir: x}}\n  - {name: a, source: {dir: y}}\n", "twice"},
		"unsafe harness":  {"harnesses:\n  claude:\n    command: [claude]\n", "yaml:3:5: harnesses.claude: agents"},
		"unknown harness": {"harness: claude\n", "yaml:1:10: harness \"claude\""},
		"public path":     {"publicUrl: https://x.example.com/deep\n", "origin"},
		"all at once":     {"lisen: a\nworkers: many\n", "yaml:2:10"},
		"a list too many": {"listen: [a]\n", "yaml:1:9: listen: want text, not array"},
		"no list":         {"factories: {name: a}\n", "yaml:1:12: factories: want a list"},
		"missing url":     {"factories:\n  - name: a\n    source:\n      git: {branch: main}\n", "yaml:4:12: factories[0].source.git.url is missing"},
		"broken yaml":     {"listen: [\n", "yaml:1:9: this [ is never closed"},
		"itself":          {"a: &a {b: *a}\n", "yaml: "},
		"below no limit":  {"limits: {failedAuthPerMinute: -2}\n", "yaml:1:31: limits.failedAuthPerMinute: -2 is not a limit"},
		"negative":        {"retention: {runs: {days: -1}}\n", "yaml:1:26: retention.runs.days -1: want 0 or more"},
		"half of tls":     {"tls: {cert: a.pem}\n", "both"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "millwright.yaml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := settings.Read(file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
