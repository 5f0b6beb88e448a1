package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Run executes the command that args name, one of the client commands or of more, and returns the
// program's exit status.
func Run(ctx context.Context, args []string, s Streams, more ...func(Streams) *cobra.Command) int {
	root := Root(s, more...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitGood
	}

	var e *Exit
	if !errors.As(err, &e) {
		e = &Exit{ExitProblem, err}
	}

	if e.err != nil {
		fmt.Fprintf(s.Err, "millwright: %s\n", e.err)
	}

	return e.Status
}

// Root returns the program's command, with the client commands and more below it.
func Root(s Streams, more ...func(Streams) *cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "millwright",
		Short: "GitOps for software factories",
		Long: `millwright watches the definition files of a software factory (webhooks/*.yaml,
automations/*/automation.md), validates and applies them, and serves the webhook
ingress, the runs API and the dashboard that they describe.`,
		Example: `  millwright init --demo .millwright/demo      make a factory to try
  millwright serve --dir ./factory             serve a directory
  millwright validate                          check the definition files here
  millwright run list                          what ran`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		Args:          noCommand,
		RunE:          help,
	}

	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newValidate(s),
		newPlan(s),
		newSync(s),
		newStatus(s),
		newSecret(s),
		newWebhook(s),
		newNotification(s),
		newRun(s),
		newFile(s),
		newRevision(s),
		newRollback(s),
		newResume(s),
		newDoctor(s),
		newAudit(s),
		newFilter(s),
		newKey(s),
		newBackup(s),
		newRestore(s),
		newSchema(s),
		newExplain(s),
		newConformance(s),
		newLSP(s),
		newMCP(s),
		newInit(s),
		newVersion(s),
		newLogin(s),
		newLogout(s),
	)

	for _, command := range more {
		root.AddCommand(command(s))
	}

	nameArguments(root)
	completable(root)
	for _, c := range root.Commands() {
		c.SuggestFor = append(c.SuggestFor, suggestions[c.Name()]...)
	}

	return root
}

func newSecret(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Set, list and delete the team's secrets; seal secrets for a definition",
		Long: `The server stores secrets sealed, and never returns their values. A webhook uses the value
that its secret had at the last apply: run millwright sync to use a new one.

A team secret is for all factories. A secret of one factory is in the factory's definition,
encrypted.`,
		Args: noCommand,
		RunE: help,
	}

	addClientFlags(cmd, &c, false)
	cmd.AddCommand(secretSet(s, &c), secretList(s, &c), secretDelete(s, &c), secretSeal(s, &c), secretRecipient(s, &c))
	return cmd
}

func newWebhook(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:        "webhook",
		SuggestFor: []string{"deliveries", "listen", "replay", "send", "uids"},
		Short:      "List and edit webhooks, read their deliveries, and send to them",
		Args:       noCommand,
		RunE:       help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(
		webhookList(s, &c),
		webhookShow(s, &c),
		webhookDeliveries(s, &c),
		webhookReplay(s, &c),
		webhookCreate(s, &c),
		webhookUpdate(s, &c),
		webhookRotate(s, &c),
		webhookDelete(s, &c),
		webhookListen(s, &c),
		webhookSend(s),
		webhookExplain(s),
		webhookSchemes(s),
		webhookUIDs(s, &c),
	)

	return cmd
}

func newRun(s Streams) *cobra.Command {
	var c Client
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start, follow, cancel and retry runs of agents, and get their changes and files",
		Args:  noCommand,
		RunE:  help,
	}

	addClientFlags(cmd, &c, true)
	cmd.AddCommand(
		runStart(s, &c),
		runList(s, &c),
		runGet(s, &c),
		runLogs(s, &c),
		runFollowup(s, &c),
		runCancel(s, &c),
		runDrop(s, &c),
		runAnswer(s, &c),
		runRetry(s, &c),
		runArtifacts(s, &c),
		runDiff(s, &c),
		runApply(s, &c),
		runOutputs(s, &c),
		runDecide(s, &c, "approve", "Agree to staged outputs of a run", "staged", "is performed"),
		runDecide(s, &c, "reject", "Reject staged outputs of a run", "staged", "is rejected"),
		runDecide(s, &c, "retry-output", "Try failed outputs of a run again", "failed", "is tried again"),
		runOpen(s, &c),
	)

	return cmd
}
