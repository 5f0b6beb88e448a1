package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"millwright/ingress/conformance"
)

// receiver is a running receiver with webhooks of the kit.
type receiver struct {
	name    string
	version string
	targets map[string]conformance.Target
}

// secrets are the credentials of the webhooks, by their names in the definition of the kit.
func secrets() map[string]string {
	return map[string]string{
		"CONFORMANCE_TOKEN": "a-token-of-the-conformance-kit-0123",
		"CONFORMANCE_WHSEC": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
	}
}

// answers waits until something answers at a URL.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}

		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			return resp.Body.Close()
		}

		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
