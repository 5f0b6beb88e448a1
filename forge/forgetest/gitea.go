// Package forgetest runs a real Gitea server for tests.
package forgetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"millwright/forge"
	"millwright/state/statetest"
)

// The variables that .ci/gitea sets.
const (
	programVariable = "MILLWRIGHT_TEST_GITEA"
	filesVariable   = "MILLWRIGHT_TEST_GITEA_FILES"
)

// The password and the name of the token of each user.
const (
	password  = "correct horse battery staple"
	tokenName = "tests"
)

// Server is a Gitea server on loopback, with an administrator.
type Server struct {
	URL   string
	Admin string // login
	Token string // of the administrator, with all scopes

	t   testing.TB
	dir string
	env []string
}

// Start runs a server until the test ends. Without the program, the test is skipped, or fails where CI=true.
func Start(t testing.TB) *Server {
	t.Helper()
	program := os.Getenv(programVariable)
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set", programVariable)
		}
		t.Skipf("%s is not set: see .ci/gitea, which make acceptance uses", programVariable)
	}

	port, err := statetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}

	s := &Server{URL: "http://127.0.0.1:" + port, Admin: "root-admin", t: t, dir: t.TempDir()}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + s.dir,
		"USER=" + os.Getenv("USER"),
		"GITEA_WORK_DIR=" + s.dir,
	}
	s.configure(port)

	s.run(program, "migrate")
	out := s.run(program, "admin", "user", "create", "--username", s.Admin, "--email", "admin@example.com",
		"--random-password", "--must-change-password=false", "--admin",
		"--access-token", "--access-token-name", tokenName, "--access-token-scopes", "all")
	if s.Token = after(out, "Access token was successfully created... "); s.Token == "" {
		t.Fatalf("gitea made no token:\n%s", out)
	}

	s.serve(program)
	return s
}

// after returns the rest of the line that has a text, without it.
func after(out, text string) string {
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, text); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// configure writes the settings. Queues are worked off within the request that fills them.
func (s *Server) configure(port string) {
	s.t.Helper()
	text := fmt.Sprintf(`APP_NAME = Gitea
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
ROOT_URL = %[3]s/
LOCAL_ROOT_URL = %[3]s/
STATIC_ROOT_PATH = %[4]s
DISABLE_SSH = true
OFFLINE_MODE = true

[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
SQLITE_JOURNAL_MODE = WAL

[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-tests
PASSWORD_HASH_ALGO = pbkdf2_v1

[service]
DISABLE_REGISTRATION = true

[queue]
TYPE = immediate

[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 30

[actions]
ENABLED = false

[indexer]
ISSUE_INDEXER_TYPE = db

[cron]
ENABLED = false

[log]
MODE = console
LEVEL = Warn
`, s.dir, port, s.URL, os.Getenv(filesVariable))
	if err := os.WriteFile(s.config(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) config() string { return filepath.Join(s.dir, "app.ini") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"--config", s.config(), "--work-path", s.dir}, args...)...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

func (s *Server) run(program string, args ...string) string {
	s.t.Helper()
	out, err := s.command(program, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// serve runs the server with its children in a process group of their own.
func (s *Server) serve(program string) {
	s.t.Helper()
	var log bytes.Buffer
	cmd := s.command(program, "web")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}

	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if s.t.Failed() {
			s.t.Logf("gitea:\n%s", log.Bytes())
		}
	})

	statetest.Until(s.t, "gitea serves", func() bool {
		select {
		case <-ended:
			s.t.Fatalf("gitea ended:\n%s", log.Bytes())
		default:
		}

		res, err := http.Get(s.URL + "/api/v1/version")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// API returns a client that acts as the administrator.
func (s *Server) API() *gitea.Client { return s.APIOf(s.Token) }

// APIOf returns a client that acts with a token.
func (s *Server) APIOf(token string) *gitea.Client {
	s.t.Helper()
	client, err := gitea.NewClient(s.URL, gitea.SetToken(token), gitea.SetGiteaVersion(""))
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Settings returns the settings of a forge for this server. Its token is the team secret GITEA_TOKEN.
func (s *Server) Settings() forge.Settings {
	return forge.Settings{Kind: forge.Gitea, URL: s.URL, TokenSecret: "GITEA_TOKEN"}
}

// Forges returns a set with this server as the forge gitea, for one factory that may use all repositories.
// token returns the current token.
func (s *Server) Forges(token func() string) *forge.Set {
	s.t.Helper()
	set, err := forge.Open(forge.Config{
		Forges:  map[string]forge.Settings{"gitea": s.Settings()},
		Allowed: map[string][]string{"factory": nil},
		Secret:  func(context.Context, string) ([]byte, error) { return []byte(token()), nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return set
}

// User adds a user, and returns a token that may do all that the user may.
func (s *Server) User(login string) (token string) {
	s.t.Helper()
	no := false
	_, _, err := s.API().AdminCreateUser(gitea.CreateUserOption{
		Username: login, Email: login + "@example.com", Password: password, MustChangePassword: &no,
	})
	if err != nil {
		s.t.Fatal(err)
	}

	made, _, err := s.asUser(login).CreateAccessToken(gitea.CreateAccessTokenOption{
		Name: tokenName, Scopes: []gitea.AccessTokenScope{gitea.AccessTokenScopeAll},
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return made.Token
}

// Revoke revokes the token of a user.
func (s *Server) Revoke(login string) {
	s.t.Helper()
	if _, err := s.asUser(login).DeleteAccessToken(tokenName); err != nil {
		s.t.Fatal(err)
	}
}

// asUser returns a client that signs in with the password of a user.
func (s *Server) asUser(login string) *gitea.Client {
	s.t.Helper()
	client, err := gitea.NewClient(s.URL, gitea.SetBasicAuth(login, password), gitea.SetGiteaVersion(""))
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Organization adds an organization that the administrator owns.
func (s *Server) Organization(name string) {
	s.t.Helper()
	if _, _, err := s.API().CreateOrg(gitea.CreateOrgOption{Name: name}); err != nil {
		s.t.Fatal(err)
	}
}

// Repository adds a repository to an organization, with one commit of files on branch main. It returns the
// commit; without files the repository is empty.
func (s *Server) Repository(owner, name string, files map[string]string) (commit string) {
	s.t.Helper()
	_, _, err := s.API().CreateOrgRepo(owner, gitea.CreateRepoOption{Name: name, DefaultBranch: "main"})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(files) == 0 {
		return ""
	}

	dir := s.t.TempDir()
	Git(s.t, dir, "init", "--quiet", "--initial-branch=main")
	for file, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		made := os.MkdirAll(filepath.Dir(path), 0o755)
		if err := errors.Join(made, os.WriteFile(path, []byte(text), 0o644)); err != nil {
			s.t.Fatal(err)
		}
	}
	Git(s.t, dir, "add", "--all")
	Git(s.t, dir, "commit", "--quiet", "--message", "Begin")
	Git(s.t, dir, "push", "--quiet", s.Remote(owner, name), "main")

	return Git(s.t, dir, "rev-parse", "HEAD")
}

// Remote returns the address of a repository with the administrator's credential in it.
func (s *Server) Remote(owner, name string) string {
	return strings.Replace(s.URL, "://", "://"+s.Admin+":"+s.Token+"@", 1) + "/" + owner + "/" + name + ".git"
}

// Webhook registers a webhook of a repository that signs its deliveries with a secret.
func (s *Server) Webhook(owner, name, url, secret string, events ...string) {
	s.t.Helper()
	_, _, err := s.API().CreateRepoHook(owner, name, gitea.CreateHookOption{
		Type:   gitea.HookTypeGitea,
		Config: map[string]string{"url": url, "content_type": "json", "secret": secret},
		Events: events,
		Active: true,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Issue opens an issue and returns its number.
func (s *Server) Issue(owner, name, title string) int {
	s.t.Helper()
	made, _, err := s.API().CreateIssue(owner, name, gitea.CreateIssueOption{Title: title})
	if err != nil {
		s.t.Fatal(err)
	}
	return int(made.Index)
}

// Protect lets nobody push to a branch.
func (s *Server) Protect(owner, name, branch string) {
	s.t.Helper()
	_, _, err := s.API().CreateBranchProtection(
		owner, name, gitea.CreateBranchProtectionOption{RuleName: branch},
	)
	if err != nil {
		s.t.Fatal(err)
	}
}
