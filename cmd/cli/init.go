package cli

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"millwright/cmd/settings"
	"millwright/runs/worker/preset"
	"millwright/schema"
	"millwright/schema/provider"
	"millwright/state"
	"millwright/state/seal"
	"millwright/testdata/factories"
)

func newInit(s Streams) *cobra.Command {
	var demo, skills bool
	var dsn, publicURL, factory, agent string
	var from []string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first definition tree; with --demo one that is ready to serve",
		Long: `Writes a definition tree to DIR (default .). DIR must not have one.

With --demo it writes three webhooks and three automations, generates their secrets in
the state, and prints a curl command for each webhook. Stop the server first.

With --from it writes a webhook and a first automation for each provider, and prints how to
connect the provider. DIR may have a tree already; files that exist stay as they are.

With --agent it writes the settings file millwright.yaml, which has that coding agent
execute the runs of DIR. DIR may have a tree already, which stays as it is.

With --skills it writes the skills factory-files and factory-mcp where coding agents look
for skills: they teach an agent to write definition files and to work with a factory.`,
		Example: `  millwright init ./factory
  millwright init --from github ./factory
  millwright init --skills .
  millwright init --agent claude ./factory && millwright serve --config millwright.yaml
  millwright init --demo .millwright/demo && millwright serve --dir .millwright/demo`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}

			if skills && (demo || agent != "" || len(from) > 0) {
				return Usagef("--skills goes with no other flag: call init once for each")
			}
			if skills {
				return initSkills(s, dir)
			}
			if agent != "" && demo {
				return Usagef("--agent and --demo: call init once for each")
			}
			if len(from) > 0 && demo {
				return Usagef("--from and --demo: call init once for each")
			}
			if agent != "" {
				if err := initAgent(s, agent, dir, factory); err != nil {
					return err
				}
			}

			for _, name := range from {
				if err := initFrom(s, name, dir); err != nil {
					return err
				}
			}
			if len(from) > 0 {
				return nil
			}

			for _, sub := range []string{"webhooks", "automations"} {
				if _, err := os.Stat(filepath.Join(dir, sub)); err == nil && agent != "" {
					return nil
				} else if err == nil {
					return &Exit{
						ExitProblem,
						fmt.Errorf("%s exists already: nothing was changed", filepath.Join(dir, sub)),
					}
				}
			}

			if demo {
				return InitDemo(cmd.Context(), s, dir, dsn, publicURL, factory)
			}

			for name, content := range scaffold {
				if err := WriteNew(filepath.Join(dir, name), []byte(content)); err != nil {
					return err
				}
			}

			fmt.Fprintf(s.Out, `wrote %[2]s/webhooks/ci.yaml and %[2]s/automations/triage/automation.md
next:
  millwright serve --dir %[1]s
and in another terminal, to have it accepted:
  millwright secret set CI_TOKEN --generate
  millwright webhook uids --write %[1]s
Give each event an ID in the header X-Service-Delivery-Id: without one, equal bodies are one
delivery. webhooks/ci.yaml says more.
`, schema.ShellWord(dir), dir)

			return nil
		},
	}

	cmd.Flags().BoolVar(&demo, "demo", false, "write the demonstration, and generate its secrets")
	cmd.Flags().BoolVar(&skills, "skills", false, "write the skills for coding agents")
	cmd.Flags().
		StringVar(
			&dsn,
			"state",
			EnvOr("MILLWRIGHT_STATE", settings.DefaultState),
			"with --demo: `DSN` of the state that serve will use (MILLWRIGHT_STATE)",
		)
	cmd.Flags().
		StringVar(
			&publicURL,
			"public-url",
			EnvOr("MILLWRIGHT_PUBLIC_URL", "http://127.0.0.1:8080"),
			"with --demo: the `URL` to print (MILLWRIGHT_PUBLIC_URL)",
		)
	cmd.Flags().StringVar(&factory, "factory", "default", "with --demo or --agent: the factory's `NAME`")
	cmd.Flags().StringVar(&agent, "agent", "",
		"write millwright.yaml for this coding agent: `"+strings.Join(preset.Names(), "|")+"`")
	cmd.Flags().StringSliceVar(&from, "from", nil,
		"write a webhook and an automation for `"+strings.Join(provider.Names(), "|")+"`")
	return cmd
}

// scaffoldWebhook is the webhook that the scaffold's automation selects.
const scaffoldWebhook = "ci"

var scaffold = map[string]string{
	"webhooks/" + scaffoldWebhook + ".yaml": `# Who may post, and how they prove it. The URL is shown by: millwright webhook show ci
authMode: token
# A team secret; make it with: millwright secret set CI_TOKEN --generate
secretName: CI_TOKEN
# An event that was delivered before starts nothing. Its identity is the header named here, or
# X-Service-Delivery-Id, or else a hash of the body: then two events with equal bodies are one.
# deliveryIdHeader: X-Build-Id
# duplicateWindow: 10m
`,
	"automations/triage/automation.md": `---
triggers:
  - provider: webhook
    event: received
    filter:
      # Replace this with the UID of webhook ci: millwright webhook uids --write does so.
      webhook_ids: [` + schema.StandInUID + `]
      payload:
        status: [failed]
---

A build failed. Read event-payload.json, find the cause, and say what to do.
`,
}

// Demo is a demonstration that was written.
type Demo struct {
	UIDs    map[string]string // of its webhooks, by name
	Secrets map[string]string // by name
}

// What the demonstration is sent.
const (
	DemoBuild       = `{"status": "failed", "branch": "main", "build": 1741}`
	DemoPullRequest = `{"action": "opened", "pull_request": {"number": 7, "draft": false}}`
)

// InitDemo writes the demonstration to dir, and prints how to use it.
func InitDemo(ctx context.Context, s Streams, dir, dsn, publicURL, factory string) error {
	made, err := MakeDemo(ctx, dir, dsn, factory)
	if err != nil {
		return err
	}

	printDemo(s.Out, dir, publicURL, made)
	return nil
}

// MakeDemo writes the demonstration to dir with the UIDs that its webhooks will get in the state, and gives the
// state secrets for them.
func MakeDemo(ctx context.Context, dir, dsn, factory string) (Demo, error) {
	key, err := seal.LoadKey(dsn, os.Getenv("MILLWRIGHT_MASTER_KEY"), "")
	if err != nil {
		return Demo{}, StartError(err)
	}

	store, err := state.Open(ctx, state.Config{DSN: dsn, MasterKey: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return Demo{}, StartError(err)
	}
	defer store.Close()

	abs, err := filepath.Abs(dir)
	if err != nil {
		return Demo{}, err
	}

	row, err := store.EnsureFactory(ctx, factory, state.Source{Kind: "dir", Path: abs}, false)
	if err != nil {
		return Demo{}, err
	}

	cur, err := store.Current(ctx, row.UID)
	if err != nil {
		return Demo{}, err
	}

	uids := map[string]string{}    // webhook name: UID
	samples := map[string]string{} // UID in the demonstration: UID
	for sample, name := range factories.DemoWebhooks() {
		uids[name] = state.WebhookUID(cur.Key, name, cur.Ordinals[name])
		samples[sample] = uids[name]
	}

	secrets := map[string]string{}
	for _, name := range []string{"CI_TOKEN", "GITHUB_SECRET", "UPTIME_TOKEN"} {
		var b [24]byte
		rand.Read(b[:])
		secrets[name] = hex.EncodeToString(b[:])
		if _, err := store.SetSecret(ctx, name, []byte(secrets[name])); err != nil {
			return Demo{}, err
		}
	}

	tree := factories.Demo()
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}

		if path.Base(name) == "automation.md" {
			if src, err = schema.RewriteWebhookIDs(src, name, samples); err != nil {
				return err
			}
		}

		return WriteNew(filepath.Join(dir, filepath.FromSlash(name)), src)
	})
	return Demo{uids, secrets}, err
}

func printDemo(w io.Writer, dir, publicURL string, made Demo) {
	secrets := made.Secrets
	url := func(name string) string { return publicURL + "/webhooks/w/" + made.UIDs[name] }
	fmt.Fprintf(w, "The demonstration is in %s. Its secrets, shown this once:\n\n", dir)
	for _, name := range []string{"CI_TOKEN", "GITHUB_SECRET", "UPTIME_TOKEN"} {
		fmt.Fprintf(w, "  %-14s %s\n", name, secrets[name])
	}

	curl := func(what, url, header, body string) {
		fmt.Fprintf(w, "\n# %s\ncurl -i %s \\\n", what, schema.ShellWord(url))
		if header != "" {
			fmt.Fprintf(w, "  -H %s \\\n", header)
		}

		fmt.Fprintf(w, "  -d %s\n", schema.ShellWord(body))
	}

	fmt.Fprintf(w, "\nWhile it is served, in another terminal:\n")
	bearer := schema.ShellWord("Authorization: Bearer " + secrets["CI_TOKEN"])
	curl("a build fails (bearer token)", url("ci"), bearer, DemoBuild)
	eventID := `"X-Service-Delivery-Id: $(date +%s%N)"` // two outages have the same body
	down := `{"service": "checkout", "state": "down"}`
	curl("a service goes down (token in the URL)", url("uptime")+"/"+secrets["UPTIME_TOKEN"], eventID, down)
	mac := hmac.New(sha256.New, []byte(secrets["GITHUB_SECRET"]))
	io.WriteString(mac, DemoPullRequest)
	signature := schema.ShellWord(fmt.Sprintf("X-Hub-Signature-256: sha256=%x", mac.Sum(nil)))
	curl("a pull request is opened (signed as GitHub does)", url("github"), signature, DemoPullRequest)
	fmt.Fprintf(w, "\nThen: millwright run list, and millwright run logs RUN\n\n")
}
