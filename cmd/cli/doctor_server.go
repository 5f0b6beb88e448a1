package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millwright/api"
)

// server checks what the server's API shows, and that the public URL reaches the server.
func (d *doctor) server(ctx context.Context) error {
	asked := time.Now()
	resp, err := d.send(ctx, http.MethodGet, "/factory?limit=1", nil)
	if err != nil {
		return err
	}

	resp.Body.Close()
	d.ok("server", "server %s answers", d.Server)
	d.serverClock(resp, asked)
	if notice := versionNotice(resp.Header.Get(api.VersionHeader), nil); notice != "" {
		d.bad("version", "install the same version here and there", "%s", notice)
	}

	_, items, err := d.status(ctx)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		d.bad("factories", "give serve --dir or --git, or factories in its settings", "the server has no factory")
	}

	var hooks []hookOf
	for _, f := range items {
		more, err := d.factoryOf(ctx, f)
		if err != nil {
			return err
		}
		hooks = append(hooks, more...)
	}

	if err := d.workers(ctx); err != nil {
		return err
	}
	return d.publicURL(ctx, hooks)
}

// serverClock compares the clocks by the date of an answer, which has no fractions of a second.
func (d *doctor) serverClock(resp *http.Response, asked time.Time) {
	said, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return
	}

	skew := said.Sub(asked)
	if answered := time.Now(); skew > 0 {
		skew = said.Sub(answered)
	}
	if skew.Abs() > maxSkew+time.Second {
		d.warn("clock", "let NTP set both clocks", "the server's clock differs from this machine's by %s",
			skew.Round(time.Second))
	}
}

// hookOf is a webhook of a factory.
type hookOf struct {
	factoryRef
	webhookItem
}

func (d *doctor) factoryOf(ctx context.Context, f FactoryItem) ([]hookOf, error) {
	switch {
	case f.Suspended:
		d.bad("factories", "",
			"factory %s is suspended: resume it with millwright resume after a rollback, else in the settings", f.Name)
	case f.Sync.State != "applied":
		d.bad("factories", "", "factory %s is %s: %s", f.Name, f.Sync.State, f.Sync.Message)
	default:
		d.ok("factories", "factory %s serves %s", f.Name, ShortRevision(f.Sync.AppliedRevision))
	}

	ref := factoryRef{UID: f.UID, Name: f.Name}
	hooks, err := d.webhooks(ctx, ref, false)

	var all []hookOf
	for _, w := range hooks {
		all = append(all, hookOf{ref, w})
		switch {
		case w.SecretPending:
			d.bad("webhooks", "", "webhook %s of %s answers 401: run millwright secret set %s",
				w.Name, f.Name, w.SecretName)
		case w.SecretStale:
			d.bad("webhooks", "", "webhook %s of %s uses an old value of %s: run millwright sync",
				w.Name, f.Name, w.SecretName)
		}
	}

	return all, err
}

func (d *doctor) workers(ctx context.Context) error {
	var list struct{ Workers []workerItem }
	if err := d.Get(ctx, "/workers?limit=500", &list); err != nil {
		return err
	}

	live, slots := 0, 0
	for _, w := range list.Workers {
		if w.Live {
			live++
			slots += w.Slots
		}
	}

	if live == 0 {
		d.bad("workers", "", "no worker takes runs: start one with millwright worker, or the server with --workers")
		return nil
	}

	d.ok("workers", "%d worker(s) take runs, %d at once", live, slots)
	return nil
}

// publicURL sends a delivery without credentials to a webhook through the public URL, and looks for it in the
// webhook's log by its size, which is a random one.
func (d *doctor) publicURL(ctx context.Context, hooks []hookOf) error {
	var w hookOf
	for _, one := range hooks {
		if one.Enabled && !one.SecretPending && (w.UID == "" || w.AuthMode == "url_token") {
			w = one
		}
	}
	if w.webhookItem.UID == "" {
		return nil
	}

	size := 1000 + rand.IntN(30_000)
	target := strings.Replace(w.IngressURL, "{token}", "doctor", 1)
	status, err := refusedDelivery(ctx, target, size)
	origin := target[:len(target)-len(pathOf(target))]
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		d.bad("public URL",
			"check publicUrl in the settings, its name in DNS, its certificate, and the proxy in front",
			"%s cannot be reached from here: %s", origin, err)
		return nil
	case status == http.StatusTooManyRequests:
		d.warn("public URL", "run it again in a minute", "%s answers 429 to this machine", origin)
		return nil
	case status != http.StatusUnauthorized:
		d.bad("public URL",
			"set publicUrl to the address at which senders reach this server, and forward all paths below it",
			"%s answered a delivery without credentials with %d, not 401: is it this server?", origin, status)
		return nil
	}

	q := url.Values{"outcome": {"rejected_auth"}, "limit": {"50"}}
	var list struct{ Deliveries []deliveryItem }
	ref := factoryRef{UID: w.factoryRef.UID, Name: w.factoryRef.Name}
	if err := d.Get(ctx, webhookPath(ref, w.webhookRef)+"/deliveries?"+q.Encode(), &list); err != nil {
		return err
	}
	for _, one := range list.Deliveries {
		if one.SizeBytes != nil && *one.SizeBytes == int64(size) {
			d.ok("public URL", "a delivery to %s reaches this server", origin)
			return nil
		}
	}

	d.warn("public URL", "compare the webhook's log: millwright webhook deliveries "+w.webhookItem.Name,
		"%s answers as this server would, but the delivery is not in its log", origin)
	return nil
}

// refusedDelivery posts a body of so many bytes without credentials, and returns the status of the answer.
func refusedDelivery(ctx context.Context, target string, size int) (int, error) {
	ctx, stop := context.WithTimeout(ctx, checkFor)
	defer stop()

	body := fmt.Sprintf(`{"millwright doctor": "%s"}`, strings.Repeat("-", size-len(`{"millwright doctor": ""}`)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return 0, errors.New("the address of the webhook is no URL")
	}
	req.Header.Set("Content-Type", "application/json")

	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return 0, err
	}
	defer resp.Body.Close()

	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, nil
}

// pathOf returns the path of a URL.
func pathOf(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return ""
}
