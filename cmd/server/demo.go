package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/cmd/cli"
	"millwright/cmd/settings"
	"millwright/dashboard"
	"millwright/schema"
)

// demoPatience bounds the time until the demonstration's run has ended.
const demoPatience = time.Minute

// demoAddress is where a demonstration listens if the port is free.
const demoAddress = "127.0.0.1:8080"

// demo is a demonstration: a factory in a directory of its own, with a server.
type demo struct {
	cli.Streams
	listen, keep string
	noBrowser    bool

	dir     string
	factory cli.Demo
	srv     *server
	client  cli.Client
}

// NewDemo returns the command that shows a factory at work.
func NewDemo(s cli.Streams) *cobra.Command {
	d := demo{Streams: s}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a factory at work: a signed delivery, its run, the dashboard",
		Long: `Makes a factory in a temporary directory, serves it on this machine alone, sends it a
signed delivery, waits for the run, and opens the dashboard in a browser. Then it prints
what to try next. It needs no network. Ctrl-C ends it and removes the directory.

The built-in echo harness executes the run: it shows what a coding agent would receive.`,
		Example: `  millwright demo
  millwright demo --listen 127.0.0.1:9000 --no-browser
  millwright demo --keep ./demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}

	f := cmd.Flags()
	f.StringVar(&d.listen, "listen", "",
		"`ADDRESS` to listen on, of this machine (default "+demoAddress+", or another port)")
	f.StringVar(&d.keep, "keep", "", "make the factory in `DIR`, which must not exist, and keep it")
	f.BoolVar(&d.noBrowser, "no-browser", false, "print the address of the dashboard without opening it")
	return cmd
}

func (d *demo) run(ctx context.Context) (err error) {
	address, err := d.address()
	if err != nil {
		return err
	}
	if err := d.makeDir(); err != nil {
		return err
	}
	if d.keep == "" {
		defer func() {
			err = errors.Join(err, os.RemoveAll(d.dir))
			if d.srv != nil {
				fmt.Fprintf(d.Out, "\nremoved %s\n", d.dir)
			}
		}()
	}

	// Keys of another state are of no use here.
	for _, name := range []string{"MILLWRIGHT_MASTER_KEY", "MILLWRIGHT_BOOTSTRAP_KEY"} {
		os.Unsetenv(name)
	}

	workers := 2
	cfg := settings.Settings{
		State:     filepath.Join(d.dir, "state.db"),
		Listen:    address,
		PublicURL: "http://" + address,
		Workers:   &workers,
		Grace:     settings.Duration(2 * time.Second),
		Factories: []settings.Factory{
			{Name: "demo", Source: settings.Source{Dir: filepath.Join(d.dir, "factory")}},
		},
	}
	if d.factory, err = cli.MakeDemo(ctx, cfg.Factories[0].Source.Dir, cfg.State, "demo"); err != nil {
		return err
	}

	log := slog.New(slog.NewTextHandler(d.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	if d.srv, err = newServer(ctx, cli.Streams{In: d.In, Out: io.Discard, Err: d.Err}, cfg, log); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return cli.StartError(err)
	}
	defer func() { err = errors.Join(err, d.srv.close()) }()

	return d.serve(ctx, cfg.PublicURL)
}

// serve runs the server, and shows the demonstration meanwhile, until ctx ends or either fails.
func (d *demo) serve(ctx context.Context, at string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	shown := make(chan error, 1)
	go func() {
		err := d.show(ctx, at)
		if err != nil {
			if ctx.Err() != nil {
				err = nil // told to end
			}
			stop()
		}
		shown <- err
	}()

	err := d.srv.run(ctx, nil)
	stop()
	return errors.Join(err, <-shown)
}

// address returns the address to listen on: the given one, else a free one.
func (d *demo) address() (string, error) {
	if d.listen != "" {
		host, _, err := net.SplitHostPort(d.listen)
		if err != nil || !cli.IsLoopback(host) {
			return "", cli.Usagef("--listen %q: want an address of this machine, like %s", d.listen, demoAddress)
		}
		return d.listen, nil
	}

	l, err := net.Listen("tcp", demoAddress)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", cli.StartError(err)
	}
	return l.Addr().String(), l.Close()
}

func (d *demo) makeDir() (err error) {
	if d.keep == "" {
		d.dir, err = os.MkdirTemp("", "millwright-demo-")
		return err
	}

	if d.dir, err = filepath.Abs(d.keep); err != nil {
		return err
	}
	if err := os.Mkdir(d.dir, 0o700); errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: nothing was changed", d.keep)
	} else if err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	return nil
}

// demoRun is what the demonstration shows of a run.
type demoRun struct {
	RunID string `json:"run_id"`
	State string
	Title string
}

// show delivers an event, waits for its run, and prints where to look.
func (d *demo) show(ctx context.Context, at string) error {
	ctx, stop := context.WithTimeout(ctx, demoPatience)
	defer stop()

	keyFile := settings.AdminKeyFile(filepath.Join(d.dir, "state.db"))
	secret, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	d.client = cli.Client{Server: at, Key: strings.TrimSpace(string(secret))}

	err = d.until(ctx, "the factory is applied", func() (bool, error) {
		var list struct {
			Factories []struct{ Sync struct{ State string } }
		}
		err := d.client.Get(ctx, "/factory", &list)
		return len(list.Factories) == 1 && list.Factories[0].Sync.State == "applied", err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "factory: %s\n  three webhooks and three automations, served at %s\n", d.dir, at)

	// A factory is reported as applied shortly before its webhooks are served.
	var delivery string
	err = d.until(ctx, "the webhook has accepted a delivery", func() (bool, error) {
		var err error
		delivery, err = d.deliver(ctx, at)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "delivery: 202 Accepted, %s\n  a pull request was opened, signed as GitHub signs\n", delivery)

	var run demoRun
	err = d.until(ctx, "the run has ended", func() (bool, error) {
		var list struct{ Runs []demoRun }
		err := d.client.Get(ctx, "/agent/runs?limit=1", &list)
		if len(list.Runs) > 0 {
			run = list.Runs[0]
		}
		return run.State == "SUCCEEDED", err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "run: %s %s, of automation %s\n  echo shows what a coding agent would receive\n",
		run.RunID, run.State, run.Title)

	d.openDashboard(ctx, at, keyFile)
	d.printNext(at, run.RunID)
	return nil
}

// until calls done until it reports true or an error that stays.
func (d *demo) until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()

	for {
		ready, err := done()
		if err == nil && ready {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("the demonstration waited in vain until %s: %w", what, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// deliver sends what GitHub sends when a pull request is opened, signed as GitHub signs. It returns the UID of
// the delivery.
func (d *demo) deliver(ctx context.Context, at string) (uid string, err error) {
	body := []byte(cli.DemoPullRequest)
	mac := hmac.New(sha256.New, []byte(d.factory.Secrets["GITHUB_SECRET"]))
	mac.Write(body)

	url := at + "/webhooks/w/" + d.factory.UIDs["github"]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", mac.Sum(nil)))

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()

	var answer struct {
		DeliveryID string `json:"delivery_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusAccepted {
		return "", fmt.Errorf("the webhook answered %s to a signed delivery", resp.Status)
	}
	return answer.DeliveryID, nil
}

// openDashboard opens a page that signs in once, where people look at the output, and prints its address.
func (d *demo) openDashboard(ctx context.Context, at, keyFile string) {
	if !isTerminal(d.Out) {
		fmt.Fprintf(d.Out, "dashboard: %s/\n  sign in with the key in %s\n", at, keyFile)
		return
	}

	_, uid := d.srv.adminKey(ctx)
	link := at + d.srv.links.New(uid, dashboard.LinkLife)
	fmt.Fprintf(d.Out, "dashboard: %s\n  the link signs in once, within %s, in any browser; the key is in %s\n",
		link, dashboard.LinkLife, keyFile)
	if d.noBrowser {
		return
	}

	page, err := writeRedirect(d.dir, link)
	if err == nil {
		name, args := browser(page)
		err = exec.Command(name, args...).Start()
	}
	if err != nil {
		fmt.Fprintln(d.Out, "  no browser could be opened: open the link yourself")
	}
}

// writeRedirect writes a page that leads to the link, and returns its path. Other users see the arguments of a
// browser, and not the page.
func writeRedirect(dir, link string) (path string, err error) {
	path = filepath.Join(dir, "sign-in.html")
	page := `<!doctype html><meta http-equiv="refresh" content="0;url=` + link + `"><title>Millwright</title>` + "\n"
	return path, os.WriteFile(path, []byte(page), 0o600)
}

// browser returns the command that opens a page.
func browser(page string) (name string, args []string) {
	switch {
	case os.Getenv("BROWSER") != "":
		return os.Getenv("BROWSER"), []string{page}
	case runtime.GOOS == "darwin":
		return "open", []string{page}
	}
	return "xdg-open", []string{page}
}

// printNext prints what to try.
func (d *demo) printNext(at, run string) {
	fmt.Fprintf(d.Out, `
In another terminal:
  export MILLWRIGHT_SERVER=%s MILLWRIGHT_STATE=%s
  millwright run logs %s
  millwright webhook deliveries github
  curl -i %s -H %s -d %s

Your own factory:
  millwright init --from github ./factory     or --from gitlab, linear, jira, slack
  millwright init --agent claude ./factory    a settings file with your coding agent
  millwright serve --config millwright.yaml
  millwright doctor

`,
		at,
		schema.ShellWord(filepath.Join(d.dir, "state.db")),
		run,
		at+"/webhooks/w/"+d.factory.UIDs["ci"],
		schema.ShellWord("Authorization: Bearer "+d.factory.Secrets["CI_TOKEN"]),
		schema.ShellWord(cli.DemoBuild),
	)

	if d.keep != "" {
		fmt.Fprintf(d.Out,
			"Ctrl-C ends the server. To serve it again:\n  millwright serve --dir %s --state %s --factory demo\n",
			schema.ShellWord(filepath.Join(d.dir, "factory")), schema.ShellWord(filepath.Join(d.dir, "state.db")))
		return
	}
	fmt.Fprintf(d.Out, "Ctrl-C ends the demonstration and removes %s.\n", d.dir)
}
