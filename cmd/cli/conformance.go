package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"millwright/ingress/conformance"
	kit "millwright/testdata/conformance"
)

func newConformance(s Streams) *cobra.Command {
	var mode, scheme, secretFile, targetsFile string
	var senders, insecure, verbose bool
	cmd := &cobra.Command{
		Use:   "conformance [URL]",
		Short: "Run the ingress conformance kit against a webhook's URL",
		Long: `Sends the requests of the conformance kit, byte for byte over TCP, and compares the
answers with those of the contract. It works with any receiver of this contract. Use a
webhook that starts nothing.

With URL it runs the cases of one kind of webhook, with --targets those of every webhook
in the file: testdata/conformance/README.md shows how to set them up. Cases without a
webhook count as skipped, never as passed.`,
		Example: `  millwright conformance http://127.0.0.1:8080/webhooks/w/wh_… --secret-file token.txt
  millwright conformance https://hooks.example.com/webhooks/w/wh_… --mode signature --scheme github --secret-file secret.txt
  millwright conformance --targets targets.json --senders`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets := map[string]conformance.Target{}
			switch {
			case len(args) == 1 && targetsFile == "":
				secret, err := secretFrom(secretFile)
				if err != nil {
					return err
				}

				name := mode
				if mode == "signature" {
					name = scheme
				}

				targets[name] = conformance.Target{Mode: mode, Scheme: scheme, URL: args[0], Secret: string(secret)}

			case len(args) == 0 && targetsFile != "":
				src, err := os.ReadFile(targetsFile)
				if err != nil {
					return Usagef("--targets: %w", err)
				}
				if err := json.Unmarshal(src, &targets); err != nil {
					return Usagef("--targets %s: %w", targetsFile, err)
				}

			default:
				return Usagef("give either a webhook's URL or --targets FILE")
			}

			for _, name := range slices.Sorted(maps.Keys(targets)) {
				if problem := targets[name].Problem(); problem != "" {
					return Usagef("webhook %q: %s", name, problem)
				}
			}

			cases, err := conformance.Load(kit.Files)
			if err != nil {
				return err
			}

			report, err := conformance.Run(cmd.Context(), conformance.Config{
				Cases: cases, Targets: targets, Senders: senders, InsecureTLS: insecure,
				Each: func(r conformance.Result) {
					switch {
					case r.Err != nil:
						fmt.Fprintf(
							s.Out,
							"FAIL %s: %s\n     %s (%s:%d)\n",
							r.Case.ID,
							clean(r.Err.Error()),
							r.Case.Why,
							r.Case.File,
							r.Case.Line,
						)

					case verbose && r.Skipped != "":
						fmt.Fprintf(s.Out, "skip %s: %s\n", r.Case.ID, r.Skipped)
					case verbose:
						fmt.Fprintf(s.Out, "ok   %s: %s\n", r.Case.ID, r.Case.Why)
					}
				},
			})
			if err != nil {
				return &Exit{ExitUnreachable, err}
			}

			fmt.Fprintf(
				s.Out,
				"%d cases passed, %d failed, %d skipped; %d requests\n",
				report.Passed,
				report.Failed,
				report.Skipped,
				report.Requests,
			)

			switch {
			case report.Failed > 0:
				return &Exit{ExitProblem, nil}
			case report.Passed == 0:
				return &Exit{
					ExitUnreachable,
					fmt.Errorf("nothing was checked: the kit has no case for the webhooks given (see --help)"),
				}
			}

			return nil
		},
	}

	f := cmd.Flags()
	f.StringVar(&mode, "mode", "token", "how the webhook at URL authenticates: `token|url_token|signature`")
	f.StringVar(&scheme, "scheme", "", "with --mode signature: `github|standard_webhooks|stripe|slack`")
	f.StringVar(
		&secretFile,
		"secret-file",
		"",
		"`FILE` with the webhook's secret (default MILLWRIGHT_WEBHOOK_SECRET)",
	)

	f.StringVar(&targetsFile, "targets", "", "JSON `FILE` with the webhooks to send to")
	f.BoolVar(
		&senders,
		"senders",
		false,
		"give each case its own sender; the receiver must trust this machine as a proxy",
	)

	f.BoolVar(&insecure, "insecure", false, "accept any certificate")
	f.BoolVarP(&verbose, "verbose", "v", false, "also list the cases that pass or are skipped")
	return cmd
}
