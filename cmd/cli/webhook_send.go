package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/schema"
	"millwright/schema/provider"
	"millwright/signature"
	"millwright/state"
)

// urlTokenMark stands for the URL token in the URL of a webhook, wherever it is shown.
const urlTokenMark = "{token}"

func webhookSend(s Streams) *cobra.Command {
	var scheme, secretFile, id, idHeader, contentType, event, repository string
	var headers []string
	cmd := &cobra.Command{
		Use:   "send [BODY] URL",
		Short: "Send a delivery as a provider would: signed, or with a bearer token",
		Long: `Sends the file BODY (- for standard input) to a webhook's URL and prints the answer.
With --scheme token it sends the secret as a bearer token. With --scheme url_token the
secret replaces {token} in the URL. Any other scheme signs as that provider does.

With --event it sends an example of that event, as the provider documents it, instead of
BODY. --repository puts your repository in it, so that a filter matches.`,
		Example: `  millwright webhook send --scheme token --secret-file token.txt body.json http://127.0.0.1:8080/webhooks/w/wh_…
  millwright webhook send --scheme github --secret-file secret.txt body.json http://127.0.0.1:8080/webhooks/w/wh_…
  millwright webhook send --scheme github --event pull_request_opened --secret-file secret.txt http://127.0.0.1:8080/webhooks/w/wh_…`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if id == "" {
				id = state.NewID("evt")
			}

			body, named, err := bodyToSend(s, args[:len(args)-1], scheme, event, repository, id)
			if err != nil {
				return err
			}

			target := args[len(args)-1]
			if scheme == "url_token" && strings.Contains(target, urlTokenMark) {
				secret, err := secretFrom(secretFile)
				if err != nil {
					return err
				}

				target = strings.Replace(target, urlTokenMark, url.PathEscape(string(secret)), 1)
			}

			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodPost, target, bytes.NewReader(body))
			if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
				return Usagef("URL is not an http or https URL") // which may hold a token
			}

			req.Header.Set("Content-Type", contentType)
			if err := setHeaders(req.Header, headers); err != nil {
				return err
			}
			if named[0] != "" {
				req.Header.Set(named[0], named[1])
			}
			if err := authenticate(req, body, scheme, secretFile, id); err != nil {
				return err
			}
			if idHeader != "" {
				req.Header.Set(idHeader, id)
			}

			return deliver(s.Out, req)
		},
	}

	f := cmd.Flags()
	f.StringVar(&scheme, "scheme", "token", "sign as `token|url_token|SCHEME`, one of millwright webhook schemes")
	f.StringVar(
		&secretFile,
		"secret-file",
		"",
		"`FILE` with the webhook's secret (default MILLWRIGHT_WEBHOOK_SECRET)",
	)

	f.StringVar(&id, "id", "", "`ID` of the event (default a new one)")
	f.StringVar(&idHeader, "id-header", "", "send the ID in this `HEADER` too")
	f.StringArrayVar(&headers, "header", nil, "send this `HEADER` too, as 'Name: value'; repeatable")
	f.StringVar(&event, "event", "", "send an example of this `EVENT` of the scheme's provider")
	f.StringVar(&repository, "repository", "", "with --event: put `OWNER/NAME` in the example")
	f.StringVar(&contentType, "content-type", "application/json", "`TYPE` of the body")
	return cmd
}

// headerLine is a header in a line.
var headerLine = regexp.MustCompile(`^([A-Za-z0-9_.-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$`)

// setHeaders sets headers that are given as 'Name: value'.
func setHeaders(h http.Header, given []string) error {
	for _, line := range given {
		m := headerLine.FindStringSubmatch(line)
		if m == nil {
			return Usagef("--header: want 'Name: value'") // which may hold a credential
		}
		h.Set(m[1], m[2])
	}
	return nil
}

// bodyToSend returns the body of a delivery, from a file or an example, and the header with the name of the
// example's event.
func bodyToSend(
	s Streams, args []string, scheme, event, repository, id string,
) (body []byte, named [2]string, err error) {
	switch {
	case event == "" && repository != "":
		return nil, named, Usagef("--repository goes with --event")
	case event != "" && len(args) > 0:
		return nil, named, Usagef("give either BODY or --event")
	case event != "":
		return exampleToSend(scheme, event, repository, id)
	case len(args) == 0:
		return nil, named, Usagef("give BODY, or --event for an example")
	case args[0] == "-":
		body, err = io.ReadAll(s.In)
	default:
		body, err = os.ReadFile(args[0])
	}

	if err != nil {
		err = Usagef("%w", err)
	}
	return body, named, err
}

// repositoryName is the full name of a repository.
var repositoryName = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+$`)

// exampleToSend returns the example of an event, with the ID where the body has one.
func exampleToSend(scheme, event, repository, id string) (body []byte, named [2]string, err error) {
	sch, ok := signature.Lookup(scheme)
	if !ok || provider.OfScheme(sch.Name()) == "" {
		return nil, named, Usagef("--event goes with --scheme %s", strings.Join(provider.AllSchemes(), ", "))
	}

	value, body, ok := provider.Example(sch.Name(), event)
	if !ok {
		return nil, named, Usagef("there is no example of %q: %s has %s", event, sch.Name(),
			strings.Join(provider.Examples(sch.Name()), ", "))
	}

	if repository != "" {
		if !repositoryName.MatchString(repository) {
			return nil, named, Usagef("--repository takes OWNER/NAME")
		}
		body = bytes.ReplaceAll(body, []byte(provider.ExampleRepository), []byte(repository))
	}

	body = bytes.ReplaceAll(body, []byte(provider.ExampleID), []byte(id))
	if header := sch.EventHeader(); header != "" && value != "" {
		named = [2]string{header, value}
	}
	return body, named, nil
}

// authenticate gives req what its sender would: a bearer token or a provider's signature.
func authenticate(req *http.Request, body []byte, scheme, secretFile, id string) error {
	if scheme == "url_token" {
		return nil
	}

	secret, err := secretFrom(secretFile)
	if err != nil {
		return err
	}
	if scheme == "token" {
		req.Header.Set("Authorization", "Bearer "+string(secret))
		return nil
	}

	sch, err := lookupScheme(scheme)
	if err != nil {
		return err
	}

	headers, err := sch.Sign(
		secret,
		signature.Message{Method: req.Method, URL: req.URL.String(), Header: req.Header, Body: body},
		id,
		time.Now(),
	)
	if err != nil {
		return Usagef("%w", err)
	}

	for name, value := range headers {
		req.Header.Set(name, value)
	}

	return nil
}

// secretFrom reads a webhook's secret from a file, less one line end, or from the environment.
func secretFrom(file string) ([]byte, error) {
	secret := []byte(os.Getenv("MILLWRIGHT_WEBHOOK_SECRET"))
	if file != "" {
		var err error
		if secret, err = os.ReadFile(file); err != nil {
			return nil, Usagef("--secret-file: %w", err)
		}

		secret = bytes.TrimSuffix(bytes.TrimSuffix(secret, []byte("\n")), []byte("\r"))
	}

	if len(secret) == 0 {
		return nil, Usagef("no secret: give --secret-file or MILLWRIGHT_WEBHOOK_SECRET")
	}

	return secret, nil
}

// deliver sends req and prints the answer. Any status but 202 is exit status 1.
func deliver(w io.Writer, req *http.Request) error {
	client := http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL, which may hold a token
		}
		if errors.Is(err, context.Canceled) {
			return err
		}

		return &Exit{ExitUnreachable, fmt.Errorf("cannot reach the webhook: %w", err)}
	}
	defer resp.Body.Close()

	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	fmt.Fprintf(w, "%d %s\n", resp.StatusCode, clean(strings.TrimSpace(string(answer))))
	if retry := resp.Header.Get("Retry-After"); retry != "" {
		fmt.Fprintf(w, "Retry-After: %s\n", clean(retry))
	}
	if resp.StatusCode != http.StatusAccepted {
		return &Exit{ExitProblem, nil}
	}

	return nil
}

// lookupScheme returns the signature scheme that a flag names.
func lookupScheme(name string) (*signature.Scheme, error) {
	if name == signature.CustomName {
		return nil, Usagef("a custom scheme is described in the webhook's file, which this command does not read: " +
			"sign as customScheme says")
	}

	sch, ok := signature.Lookup(name)
	if ok {
		return sch, nil
	}
	if near := schema.Nearest(name, signature.Names()); near != "" {
		return sch, Usagef("unknown scheme %q: did you mean %s? (see millwright webhook schemes)", name, near)
	}
	return sch, Usagef("unknown scheme %q: see millwright webhook schemes", name)
}
