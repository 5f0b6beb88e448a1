package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/signature"
)

func webhookExplain(s Streams) *cobra.Command {
	var scheme, secretFile, url, at string
	cmd := &cobra.Command{
		Use:   "explain REQUEST",
		Short: "Explain why a webhook would refuse a captured request",
		Long: `REQUEST is a file with a request as it came over the wire, or - for standard input: request
line, headers, an empty line and the body, byte for byte. The command prints which header
is wrong, how old the signature is, and which bytes were signed. It sends nothing.`,
		Example: `  millwright webhook explain --scheme stripe --secret-file secret.txt request.http
  millwright webhook explain --scheme square --secret-file s.txt --url https://hooks.example.com/webhooks/w/wh_… request.http`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sch, err := lookupScheme(scheme)
			if err != nil {
				return err
			}

			secret, err := secretFrom(secretFile)
			if err != nil {
				return err
			}

			now := time.Now()
			if at != "" {
				if now, err = time.Parse(time.RFC3339, at); err != nil {
					return Usagef("--at: want a time like 2026-01-02T15:04:05Z")
				}
			}

			m, err := readRequest(s, args[0])
			if err != nil {
				return err
			}

			if url != "" {
				if _, query, ok := strings.Cut(m.URL, "?"); ok && !strings.Contains(url, "?") {
					url += "?" + query // which is received, and signed, behind the webhook's own URL
				}
				m.URL = url
			}

			for _, line := range sch.Explain(secret, m, now) {
				fmt.Fprintln(s.Out, clean(line))
			}

			v, err := sch.Verifier(secret)
			if err == nil {
				_, err = v.Verify(m, now)
			}
			if err != nil {
				return &Exit{ExitProblem, nil}
			}

			return nil
		},
	}

	f := cmd.Flags()
	f.StringVar(&scheme, "scheme", "", "the webhook's `SCHEME`: millwright webhook schemes lists them")
	f.StringVar(
		&secretFile,
		"secret-file",
		"",
		"`FILE` with the webhook's secret (default MILLWRIGHT_WEBHOOK_SECRET)",
	)

	f.StringVar(&url, "url", "", "the webhook's public `URL`, for schemes that sign it")
	f.StringVar(&at, "at", "", "verify as of this `TIME` (RFC 3339, default now)")
	return cmd
}

// readRequest reads a captured request. The body is all that follows the headers, whatever they say of
// its length.
func readRequest(s Streams, file string) (signature.Message, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = io.ReadAll(io.LimitReader(s.In, 4<<20))
	} else {
		src, err = os.ReadFile(file)
	}

	if err != nil {
		return signature.Message{}, Usagef("%w", err)
	}

	empty := regexp.MustCompile(`\r?\n\r?\n`).FindIndex(src)
	if empty == nil {
		return signature.Message{}, Usagef("%s: no empty line between headers and body", file)
	}

	head, body := src[:empty[0]], src[empty[1]:]
	req, err := http.ReadRequest(
		bufio.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader([]byte("\r\n\r\n")))),
	)
	if err != nil {
		return signature.Message{}, Usagef("%s: not a request: %w", file, err)
	}

	return signature.Message{
		Method: req.Method,
		URL:    "https://" + req.Host + req.RequestURI,
		Header: req.Header,
		Body:   body,
	}, nil
}
