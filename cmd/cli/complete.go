package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"millwright/signature"
	"millwright/state"
)

// completionTime bounds the time that a shell waits for values that only a server knows.
const completionTime = time.Second

// values lists the values of a placeholder, each with a description after a tab. They may need a server.
type values func(context.Context, completion) ([]string, error)

// placeholders are the words of usage lines and flags that stand for values which can be completed.
var placeholders = map[string]values{
	"FACTORY":  factoryValues,
	"WEBHOOK":  webhookValues,
	"DELIVERY": deliveryValues,
	"RUN":      runValues,
	"ARTIFACT": artifactValues,
	"SECRET":   secretValues,
	"KEY":      keyValues,
	"LOGIN":    loginValues,
	"HARNESS":  harnessValues,
	"HELD":     fileValues,
	"REVISION": revisionValues,
	"STATE":    func(context.Context, completion) ([]string, error) { return stateNames(), nil },
	"SCHEME":   func(context.Context, completion) ([]string, error) { return schemeNames(), nil },
}

// files are the placeholders for which a shell completes the names of files.
var files = []string{"FILE", "DIR", "DIRECTORY", "PATH", "BODY", "REQUEST", "FILTER", "DSN"}

// completable makes the shell complete the arguments and flags of cmd and of the commands below it, by the
// placeholders in their help.
func completable(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		completable(c)
	}

	if cmd.Runnable() && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		words := strings.Fields(cmd.Use)[1:]
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(words) == 0 || len(args) >= len(words) && !strings.Contains(words[len(words)-1], "…") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}

			word := words[min(len(args), len(words)-1)]
			return complete(cmd, strings.Trim(word, "[]…"), args)
		}
	}

	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if _, given := cmd.GetFlagCompletionFunc(f.Name); given || f.Value.Type() == "bool" {
				return
			}

			word, _ := pflag.UnquoteUsage(f)
			_ = cmd.RegisterFlagCompletionFunc(
				f.Name,
				func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
					return complete(cmd, word, args)
				},
			)
		})
	}
}

// complete returns the values of a placeholder, such as FACTORY or text|json. It returns none when the server
// does not answer in time.
func complete(cmd *cobra.Command, word string, args []string) ([]string, cobra.ShellCompDirective) {
	if slices.Contains(files, word) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completionTime)
	defer stop()

	at := completion{&Client{Server: defaultServer()}, cmd.Flags(), args}
	if server := at.flag("server"); server != "" {
		at.Server = server
	}
	at.factory = at.flag("factory")

	var found []string
	for _, part := range strings.Split(word, "|") {
		list, known := placeholders[part]
		if !known && part != strings.ToUpper(part) {
			found = append(found, part) // a value as it is
		}
		if !known {
			continue
		}

		some, err := list(ctx, at)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = append(found, some...)
	}

	return found, cobra.ShellCompDirectiveNoFileComp
}

func factoryValues(ctx context.Context, at completion) ([]string, error) {
	all, err := at.factories(ctx)
	return each(all, func(f factoryRef) string { return described(f.Name, f.UID) }), err
}

func webhookValues(ctx context.Context, at completion) ([]string, error) {
	factories, err := at.chosen(ctx)
	if err != nil {
		return nil, err
	}

	var found []string
	for _, f := range factories {
		hooks, err := at.webhooks(ctx, f, false)
		if err != nil {
			return nil, err
		}

		found = append(found, each(hooks, func(w webhookItem) string {
			return described(w.Name, f.Name+", "+w.mode()+", "+w.standing())
		})...)
	}

	return found, nil
}

// deliveryValues lists the latest deliveries of the webhook that the command line names.
func deliveryValues(ctx context.Context, at completion) ([]string, error) {
	name := at.flag("webhook")
	if name == "" && len(at.args) > 0 {
		name = at.args[0]
	}
	if name == "" {
		return nil, nil
	}

	f, w, err := at.webhook(ctx, name)
	if err != nil {
		return nil, err
	}

	var list struct {
		Deliveries []struct {
			DeliveryID string `json:"delivery_id"`
			Label      string
			ReceivedAt string `json:"received_at"`
		}
	}
	err = at.Get(ctx, webhookPath(f, w)+"/deliveries?limit=50", &list)

	var found []string
	for _, d := range list.Deliveries {
		found = append(found, described(d.DeliveryID, d.Label+", "+ago(d.ReceivedAt)))
	}
	return found, err
}

func runValues(ctx context.Context, at completion) ([]string, error) {
	var list struct{ Runs []runItem }
	err := at.Get(ctx, "/agent/runs?limit=50", &list)
	return each(list.Runs, func(r runItem) string {
		return described(r.RunID, r.State+", "+ago(r.UpdatedAt)+", "+shorten(r.Title, 40))
	}), err
}

// artifactValues lists what the run before it left.
func artifactValues(ctx context.Context, at completion) ([]string, error) {
	all, _, err := at.artifacts(ctx, at.args[0])
	return each(all, func(a artifactItem) string { return described(a.name(), a.Type+" "+a.Data.Repository) }), err
}

func secretValues(ctx context.Context, at completion) ([]string, error) {
	var list struct{ Secrets []secretItem }
	err := at.Get(ctx, "/secrets?limit=500", &list)
	return each(list.Secrets, func(x secretItem) string {
		return described(x.Name, x.standing()+", changed "+ago(x.UpdatedAt))
	}), err
}

func keyValues(ctx context.Context, at completion) ([]string, error) {
	var list struct{ Keys []keyItem }
	err := at.Get(ctx, "/keys?limit=500", &list)
	list.Keys = slices.DeleteFunc(list.Keys, func(k keyItem) bool { return k.RevokedAt != nil })
	return each(list.Keys, func(k keyItem) string { return described(k.UID, k.Name+", "+k.Role) }), err
}

// fileValues lists the definition files that the server holds.
func fileValues(ctx context.Context, at completion) ([]string, error) {
	f, err := at.one(ctx)
	if err != nil {
		return nil, err
	}

	var list struct{ Files []struct{ Path string } }
	err = at.Get(ctx, "/factory/"+f.UID+"/files?limit=500", &list)

	var found []string
	for _, file := range list.Files {
		found = append(found, clean(file.Path))
	}
	return found, err
}

func revisionValues(ctx context.Context, at completion) ([]string, error) {
	f, err := at.one(ctx)
	if err != nil {
		return nil, err
	}

	var list struct{ Revisions []revisionItem }
	err = at.Get(ctx, "/factory/"+f.UID+"/revisions?limit=50", &list)
	return each(list.Revisions, func(r revisionItem) string { return described(r.Revision, r.Subject) }), err
}

func stateNames() []string {
	return each(state.RunStates(), func(s state.RunState) string { return string(s) })
}

func schemeNames() []string {
	var names []string
	for _, scheme := range signature.Schemes() {
		names = append(names, scheme.Name())
		names = append(names, scheme.Aliases()...)
	}
	return names
}

func each[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}
