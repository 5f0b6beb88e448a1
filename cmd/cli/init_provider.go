package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"millwright/schema"
	"millwright/schema/provider"
)

// starter is a first automation of a provider, and how to connect the provider.
type starter struct {
	automation string // name
	trigger    string // in YAML
	prompt     string
	secret     string   // how the secret is agreed on
	connect    []string // what to enter at the provider
}

// starters has a starter for each provider.
func starters() map[string]starter {
	generated := "millwright secret set %s --generate"
	given := "millwright secret set %s"

	return map[string]starter{
		provider.GitHub: {
			"github-pull-requests", "event: pull_request_opened\n    filter:\n      repos: [OWNER/NAME]",
			"A pull request was opened. Read event-payload.json, and review the change.",
			generated,
			[]string{
				"Open Settings, Webhooks, Add webhook in the repository or organization.",
				"Payload URL: the URL above. Content type: application/json. Secret: the secret above.",
				"Events: choose Let me select individual events, then Pull requests, and those of your other triggers.",
			},
		},
		provider.GitLab: {
			"gitlab-merge-requests", "event: merge_request\n    filter:\n" +
				"      repos: [GROUP/NAME]\n      actions: [open]",
			"A merge request was opened. Read event-payload.json, and review the change.",
			generated,
			[]string{
				"Open Settings, Webhooks, Add new webhook in the project or group.",
				"URL: the URL above. Secret token: the secret above.",
				"Trigger: Merge request events, and those of your other triggers.",
			},
		},
		provider.Linear: {
			"linear-labels", "event: issue_labeled\n    filter:\n      labels: [agent]",
			"An issue was labeled. Read event-payload.json, and do what the issue asks for.",
			given,
			[]string{
				"Open Settings, API, Webhooks, New webhook.",
				"URL: the URL above. Data change events: Issues, and those of your other triggers.",
				"Copy the signing secret that Linear shows: it is the value of the secret above.",
			},
		},
		provider.Jira: {
			"jira-labels", "event: issue_labeled\n    filter:\n      project_keys: [KEY]\n      labels: [agent]",
			"A work item was labeled. Read event-payload.json, and do what it asks for.",
			generated,
			[]string{
				"Open Settings, System, WebHooks, Create a WebHook.",
				"URL: the URL above. Secret: the secret above.",
				"Events: Issue created and updated.",
			},
		},
		provider.Slack: {
			"slack-mentions", "event: app_mention",
			"Somebody mentioned the app. Read event-payload.json, and answer the question.",
			given,
			[]string{
				"Create an app at https://api.slack.com/apps. Its signing secret, under Basic Information, is " +
					"the value of the secret above.",
				"Event Subscriptions, Request URL: the URL above. The server answers Slack's verification.",
				"Subscribe to bot events: app_mention, and those of your other triggers. Then install the app.",
			},
		},
	}
}

// initFrom writes a webhook and a first automation for a provider, and prints how to connect the provider.
func initFrom(s Streams, name, dir string) error {
	start, ok := starters()[name]
	if !ok {
		return Usagef("--from takes %s", strings.Join(provider.Names(), ", "))
	}

	secret := strings.ToUpper(name) + "_WEBHOOK_SECRET"
	webhook := "authMode: signature\nsignatureScheme: " + name + "\nsecretName: " + secret + "\n"
	if name == provider.Slack {
		webhook += "handshake: true\n"
	}

	automation := fmt.Sprintf("---\ntriggers:\n  - provider: %s\n    %s\n---\n\n%s\n", name, start.trigger,
		start.prompt)
	automationFile := "automations/" + start.automation + "/automation.md"
	for _, file := range [][2]string{{"webhooks/" + name + ".yaml", webhook}, {automationFile, automation}} {
		place := filepath.Join(dir, filepath.FromSlash(file[0]))
		err := WriteNew(place, []byte(file[1]))
		if errors.Is(err, fs.ErrExist) {
			return &Exit{ExitProblem, fmt.Errorf("%s exists already", place)}
		}
		if err != nil {
			return err
		}

		fmt.Fprintf(s.Out, "wrote %s\n", clean(place))
	}

	fmt.Fprintf(s.Out, "\nConnect %s:\n", name)
	fmt.Fprintf(s.Out, "  1. Secret: "+start.secret+"\n", secret)
	fmt.Fprintf(s.Out, "  2. Serve the tree, then take the URL from: millwright webhook show %s\n", name)
	for i, line := range start.connect {
		fmt.Fprintf(s.Out, "  %d. %s\n", i+3, line)
	}

	event := strings.Fields(start.trigger)[1]
	fmt.Fprintf(s.Out, "\nTry it before: millwright webhook send --scheme %s --event %s --secret-file FILE URL\n",
		schema.ShellWord(name), event)
	return nil
}
