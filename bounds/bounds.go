// Package bounds declares the limits on what strangers can make the server hold: bytes, connections, work
// in progress, records of senders, and the time of a request.
//
// The ingress, the API and the pages of the dashboard reserve what they hold here first. Each bound has a
// share for each sender, so that no sender exhausts it for the others, and each is a metric. docs/limits.md
// is generated from this package.
package bounds

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sizes of one request, in bytes.
const (
	MaxDelivery   = 256 << 10 // body of a delivery
	MaxBody       = 8 << 20   // body of a request to the API with a key
	MaxKeyless    = 2 << 20   // body of a request to the API without a key
	MaxPushNotice = 4 << 20   // body of a push notice
	MaxSignIn     = 4 << 10   // body of a request to a page without a session
	MaxForm       = 1 << 20   // body of a form
	MaxImport     = 17 << 20  // body of a form with files
	MaxHeader     = 32 << 10  // headers
	MaxFields     = 256       // header fields of a delivery
	MaxValues     = 50_000    // JSON values in a body that the API parses
)

// Times of one request.
const (
	HeaderTime   = 10 * time.Second // until the headers have arrived
	DeliveryTime = 15 * time.Second // until the body of a delivery has arrived
	BodyTime     = 30 * time.Second // until any other body has arrived
	WriteTime    = 30 * time.Second // until a part of an answer is received, and longer the larger it is
	AnswerTime   = 2 * time.Minute  // until an answer to a delivery is received
	IdleTime     = 75 * time.Second // between the requests of a connection
)

// MaxStreams is the number of concurrent requests of an HTTP/2 connection.
const MaxStreams = 100

// Rows that rejected deliveries may add to the log.
const (
	RejectedRows                = 1000 // of one webhook in a minute; those beyond share rows
	SharedRejectedRows          = 4096 // shared rows that wait to be written
	SharedRejectedRowsOfWebhook = 256  // of these, those of one webhook
)

// Config overrides the defaults. The zero value works.
type Config struct {
	// Connections bounds the open connections. 0 means 10,000.
	Connections int64
	// SenderConnections bounds those of one sender. 0 means 256, a negative number none.
	SenderConnections int64
	// DeliveryBytes bounds the deliveries in memory. 0 means 64 MiB.
	DeliveryBytes int64
	// Registerer receives the metrics; nil: they are not exported.
	Registerer prometheus.Registerer
}

// Bounds are the bounds of one server.
type Bounds struct {
	Connections *Pool
	Streams     *Pool // requests over HTTP/2 under way

	Deliveries *Pool // bytes of deliveries
	Keyless    *Pool // bytes of requests without a key
	Pushes     *Pool // bytes of push notices
	Keyed      *Pool // bytes of requests with a key
	Parsed     *Pool // bytes of parsed bodies

	Validations *Slots // of trees without a key
	Plans       *Slots // of trees with a key
	Suspects    *Slots // look-ups of keys for senders of wrong keys
	Large       *Slots // deliveries of more than LargeDelivery bytes
	Agents      *Slots // requests of MCP clients

	DeliveryStreams *Pool // event streams of deliveries
	RunStreams      *Pool // event streams of runs
	PageStreams     *Pool // streams of dashboard pages

	WebhookDeliveries *Budget[WebhookSender]
	WebhookFailures   *Budget[WebhookSender]
	WrongKeys         *Rate
	SignIns           *Rate
	Validating        *Rate
	WrongPushes       *Rate
}

// WebhookSender is the key of a delivery budget. Only existing webhooks have budgets.
type WebhookSender struct{ Webhook, Sender string }

// LargeDelivery is the size in bytes above which deliveries wait for each other, so that small ones do not
// wait for them.
const LargeDelivery = 32 << 10

// LargeInProgress is how many bytes of them are judged and stored at once.
const LargeInProgress = 512 << 10

// DefaultDeliveryBytes is the default of Config.DeliveryBytes.
const DefaultDeliveryBytes = 64 << 20

// New returns the bounds of a new server.
func New(cfg Config) *Bounds {
	ofConnections := shares{part: 0.25, least: 1, most: cmp.Or(cfg.SenderConnections, 256)}
	if cfg.SenderConnections < 0 {
		ofConnections = shares{}
	}

	ofBytes, ofStreams := shares{part: 0.5, least: firstRead}, shares{part: 0.5, least: 1}
	b := &Bounds{
		Connections: newPool(connections, cmp.Or(cfg.Connections, 10_000), ofConnections),
		Streams:     newPool(streams, 4096, shares{part: 0.25, least: 1}),

		Deliveries: newPool(deliveries, cmp.Or(cfg.DeliveryBytes, DefaultDeliveryBytes), ofBytes),
		Keyless:    newPool(keyless, 16<<20, ofBytes),
		Pushes:     newPool(pushes, 32<<20, ofBytes),
		Keyed:      newPool(keyed, 64<<20, ofBytes),
		Parsed:     newPool(parsed, 96<<20, ofBytes),

		Validations: newSlots(validations, 1, 16, 4, 2*time.Second),
		Plans:       newSlots(plans, 2, 64, 32, 30*time.Second),
		Suspects:    newSlots(suspects, 2, 4096, 0, 30*time.Second).paced(25 * time.Millisecond),
		Large:       newSlots(large, LargeInProgress, 2048, 0, 10*time.Second),
		Agents:      newSlots(agents, 16, 128, 32, 30*time.Second),

		DeliveryStreams: newPool(deliveryStreams, 200, ofStreams),
		RunStreams:      newPool(runStreams, 1000, ofStreams),
		PageStreams:     newPool(pageStreams, 512, ofStreams),

		WebhookDeliveries: newBudget[WebhookSender](webhookDeliveries, 60, 32<<10),
		WebhookFailures:   newBudget[WebhookSender](webhookFailures, 20, 32<<10),
		WrongKeys:         newRate(wrongKeys, 30, 4096),
		SignIns:           newRate(signIns, 10, 4096),
		Validating:        newRate(validating, 30, 4096),
		WrongPushes:       newRate(wrongPushes, 20, 4096),
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(b)
	}

	return b
}

const (
	noRoom     = "503 with `Retry-After`"
	overBudget = "429 with `Retry-After`"
	half       = "half; it shrinks with the free amount"
)

var (
	connections = about{
		"connections",
		"open connections",
		"",
		"256, fewer when fewer than 3,200 are free; no bound for `trustedProxies`",
		"",
		noRoom + "; over TLS the connection is closed",
	}
	streams = about{
		"http2_requests",
		"concurrent requests over HTTP/2",
		"",
		"a quarter; it shrinks with the free amount",
		"",
		noRoom,
	}

	deliveries = about{
		"delivery_bytes",
		"deliveries in progress",
		"bytes",
		half,
		"`limits.inFlightBytes`",
		noRoom,
	}
	keyless = about{"keyless_bytes", "requests without a key", "bytes", half, "", noRoom}
	pushes  = about{"push_bytes", "push notices", "bytes", half, "", noRoom}
	keyed   = about{"keyed_bytes", "requests with a key", "bytes", half + ", for each key", "", noRoom}
	parsed  = about{"parsed_bytes", "parsed bodies", "bytes", half, "", noRoom}

	validations = about{"validations", "validations without a key, one in progress", "", "4", "", noRoom}
	plans       = about{
		"plans",
		"plans and validations with a key, two in progress",
		"",
		"32, for each key",
		"",
		noRoom,
	}
	suspects = about{
		"key_lookups",
		"look-ups of keys for senders of too many wrong keys, two in progress",
		"",
		"any number, 40 a second; keys that were right before do not wait",
		"",
		noRoom,
	}

	large = about{
		"large_deliveries",
		"deliveries of more than 32 KiB, of which 512 KiB in progress",
		"",
		"",
		"",
		noRoom,
	}

	agents = about{
		"mcp_requests",
		"requests of MCP clients, 16 in progress",
		"",
		"32, for each key",
		"",
		noRoom,
	}

	deliveryStreams = about{
		"delivery_streams",
		"open event streams of deliveries",
		"",
		half + ", for each key",
		"",
		noRoom,
	}
	runStreams  = about{"run_streams", "open event streams of runs", "", half + ", for each key", "", noRoom}
	pageStreams = about{
		"page_streams",
		"dashboard pages that update themselves",
		"",
		half + ", for each key",
		"",
		noRoom,
	}

	webhookDeliveries = about{
		"delivery_senders",
		"senders of deliveries",
		"",
		"60 deliveries a minute to one webhook",
		"`limits.deliveriesPerMinute`",
		overBudget,
	}
	webhookFailures = about{
		"failed_senders",
		"senders of failed authentications",
		"",
		"20 a minute to one webhook",
		"`limits.failedAuthPerMinute`",
		overBudget,
	}
	wrongKeys = about{
		"wrong_key_senders",
		"senders of wrong API keys, and of claims that hold no run",
		"",
		"30 a minute; a right key is still answered",
		"",
		overBudget,
	}
	signIns = about{
		"sign_in_senders",
		"senders of wrong keys to the dashboard",
		"",
		"10 a minute; a right key still signs in",
		"",
		overBudget,
	}
	validating = about{
		"validation_senders",
		"senders of validations without a key",
		"",
		"30 a minute",
		"",
		overBudget,
	}
	wrongPushes = about{
		"wrong_push_senders",
		"senders of wrongly signed push notices",
		"",
		"20 a minute",
		"",
		overBudget,
	}
)

// bound is one of the bounds.
type bound interface {
	describe() about
	measure() (held, limit, refused int64)
}

// all returns every bound, in the order of docs/limits.md.
func (b *Bounds) all() []bound {
	return []bound{
		b.Connections, b.Streams,
		b.Deliveries, b.Keyless, b.Pushes, b.Keyed, b.Parsed,
		b.Validations, b.Plans, b.Suspects, b.Large, b.Agents,
		b.DeliveryStreams, b.RunStreams, b.PageStreams,
		b.WebhookDeliveries, b.WebhookFailures, b.WrongKeys, b.SignIns, b.Validating, b.WrongPushes,
	}
}
