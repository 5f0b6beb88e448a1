// Package attack starts a server and makes the requests of hostile senders, and of an honest one, from
// addresses of their own on loopback. bench/hostile measures with it; a test of the program holds the
// bounds with it.
package attack

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Target is what senders know of a server. It travels as JSON to a process that attacks.
type Target struct {
	Addr                    string
	Token, Filtered, Signed Hook
}

// Hook is a webhook: the path of its URL, and its token.
type Hook struct{ Path, Token string }

// Server is a running server that has webhooks to attack.
type Server struct {
	Target
	key     string
	log     bytes.Buffer
	process *exec.Cmd
}

// Start starts a program with a new state in dir, and gives it three webhooks. environment is added to that
// of this process.
func Start(ctx context.Context, program, dir string, environment ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}

	s := &Server{key: "mw_hostile-key-of-thirty-two-characters"}
	s.Addr = "127.0.0.1:" + port
	config := filepath.Join(dir, "millwright.yaml")
	settings := "listen: 0.0.0.0:" + port + "\nworkers: 0\nlimits: {deliveriesPerMinute: -1}\n" +
		"factories:\n  - name: hostile\n    source: {managed: {}}\n"
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return nil, err
	}

	s.process = exec.Command(
		program,
		"serve",
		"--config",
		config,
		"--log-level",
		"error",
	)

	s.process.Env = append(os.Environ(), "MILLWRIGHT_STATE="+filepath.Join(dir, "state.db"))
	s.process.Env = append(s.process.Env, environment...)
	s.process.Env = append(s.process.Env, "TMPDIR="+dir, "MILLWRIGHT_BOOTSTRAP_KEY="+s.key,
		"MILLWRIGHT_MASTER_KEY="+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	s.process.Stderr = &s.log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	if err := s.define(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w\n%s", err, s.log.String())
	}

	return s, nil
}

// Stop kills the server.
func (s *Server) Stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Peak returns the most memory, in bytes, that was resident in the server so far.
func (s *Server) Peak() (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.process.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}

	return 0, errors.New("the system does not tell how much memory a process has")
}

// define waits until the server answers, and makes what is attacked.
func (s *Server) define(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	var list struct{ Factories []struct{ UID string } }
	for len(list.Factories) == 0 {
		_ = s.Call(ctx, http.MethodGet, "/factory", "", &list)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}

	factory := "/factory/" + list.Factories[0].UID
	for name, h := range map[string]*Hook{"token": &s.Token, "filtered": &s.Filtered, "signed": &s.Signed} {
		mode := `"token"`
		if h == &s.Signed {
			mode = `"signature", "signature_scheme": "github", "secret": "a secret of the hub"`
		}

		var made struct {
			URL    string `json:"ingress_url"`
			Secret string
		}
		webhook := `{"name": "` + name + `", "auth_mode": ` + mode + `}`
		if err := s.Call(ctx, http.MethodPost, factory+"/webhooks", webhook, &made); err != nil {
			return err
		}

		*h = Hook{made.URL[strings.Index(made.URL, "/webhooks/"):], made.Secret}
	}

	uid := path.Base(s.Filtered.Path)
	automation := "---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n" +
		"      webhook_ids: [" + uid + "]\n" +
		"      payload: {status: [failed]}\n---\n\nLook at it.\n"
	body, err := json.Marshal(map[string]string{"content": automation})
	if err != nil {
		return err
	}

	return s.Call(ctx, http.MethodPut, factory+"/files/automations/triage/automation.md", string(body), nil)
}

// Call makes a request of the server's API as an administrator, and decodes the answer.
func (s *Server) Call(ctx context.Context, method, endpoint, body string, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+"/api/v1"+endpoint, strings.NewReader(body))
	if err != nil {
		return err
	}

	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s: %v", method, endpoint, resp.StatusCode, text, err)
	}
	if out == nil {
		return nil
	}

	return json.Unmarshal(text, out)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
