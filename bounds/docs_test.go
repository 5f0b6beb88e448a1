package bounds

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write docs/limits.md anew")

const page = "../docs/limits.md"

// TestDocs holds docs/limits.md to the bounds.
func TestDocs(t *testing.T) {
	want := limitsPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the bounds are: run make docs", page)
	}
}

func limitsPage() string {
	var b strings.Builder
	b.WriteString(`# Limits

<!-- Generated from package bounds: make docs -->

The server bounds what it holds for others, in all and for each sender.

* A sender is an address, or the /64 network of an IPv6 address. Behind a proxy in ` + "`trustedProxies`" + ` it is the client.
* The senders of a /48 network together may hold twice the share of one sender, and have eight times its rate.
* Shares shrink with the free amount, so that greedy senders leave room for others.

## Held at once

The metrics ` + "`millwright_bound_held`, `millwright_bound_limit` and `millwright_bound_refused_total`" + ` have the label ` + "`bound`" + `.

| bound | of | limit | share of a sender | setting | answer beyond |
| --- | --- | --- | --- | --- | --- |
`)
	for _, one := range New(Config{}).all() {
		a := one.describe()
		_, limit, _ := one.measure()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", a.name, a.what, amount(limit, a.unit), cmp.Or(a.share, "none"), cmp.Or(a.setting, "none"), a.answer)
	}
	b.WriteString("\n## One request\n\n| of | limit | answer beyond |\n| --- | --- | --- |\n")
	for _, r := range []struct {
		what   string
		limit  any
		beyond string
	}{
		{"body of a delivery", MaxDelivery, "413"},
		{"body of a request to the API with a key", MaxBody, "413"},
		{"body of a request to the API without a key", MaxKeyless, "413"},
		{"body of a push notice", MaxPushNotice, "413"},
		{"body of a request to a page before the sign-in", MaxSignIn, "413"},
		{"form of a page", MaxForm, "413"},
		{"form of a page with files", MaxImport, "413"},
		{"headers", MaxHeader, "431"},
		{"header fields of a delivery", fmt.Sprint(MaxFields), "431"},
		{"JSON values in a body that the API parses", group(MaxValues), "413"},
		{"requests of one HTTP/2 connection at once", fmt.Sprint(MaxStreams), "the request waits"},
		{"time until the headers have arrived", HeaderTime, "the connection ends"},
		{"time until the body of a delivery has arrived", DeliveryTime, "400; counts as a failed authentication where a signature would prove the sender"},
		{"time until any other body has arrived", BodyTime, "400, or the connection ends"},
		{"time until a part of an answer is received, and a second more for each 16 KiB", WriteTime, "the connection ends"},
		{"time between the requests of a connection", IdleTime, "the connection ends"},
	} {
		text := fmt.Sprint(r.limit)
		switch v := r.limit.(type) {
		case int:
			text = amount(int64(v), "bytes")
		case time.Duration:
			text = fmt.Sprintf("%.0f s", v.Seconds())
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, text, r.beyond)
	}
	fmt.Fprintf(&b, `
## Rows of the delivery log

| of | limit | beyond |
| --- | --- | --- |
| rejected deliveries of one webhook in a minute, each with a row | %s | those of one outcome and sender share a row |
| shared rows that wait to be written | %s, and %s of one webhook | senders share a row |
`, group(RejectedRows), group(SharedRejectedRows), group(SharedRejectedRowsOfWebhook))
	return b.String()
}

func amount(n int64, unit string) string {
	switch {
	case unit == "bytes" && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case unit == "bytes":
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return group(n)
}

func group[N int | int64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TestMetrics reads every bound from the metrics, and no label that a sender chose.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := New(Config{Registerer: reg})
	b.Deliveries.Take("192.0.2.1", 1000)
	b.Connections.Take("192.0.2.1", 1_000_000)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) != 1 {
				t.Errorf("labels %v", m.GetLabel())
			}
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"millwright_bound_held delivery_bytes": 1000, "millwright_bound_limit delivery_bytes": 64 << 20,
		"millwright_bound_refused_total connections": 1, "millwright_bound_held connections": 0,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if len(got) != 3*len(b.all()) {
		t.Errorf("%d metrics of %d bounds", len(got), len(b.all()))
	}
}
