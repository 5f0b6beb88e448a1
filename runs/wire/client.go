package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// Client is a worker's connection to its servers.
type Client struct {
	nc       *nats.Conn
	uid      string
	instance string
}

// NewClient returns a worker's connection over one to NATS, whose prefix of inboxes must be [Inbox].
func NewClient(nc *nats.Conn, uid string) *Client {
	return &Client{nc: nc, uid: uid, instance: nuid.Next()}
}

// Options returns the options of a connection to NATS that reconnects for ever.
func Options(log *slog.Logger) []nats.Option {
	return []nats.Option{
		nats.Name("millwright"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(PingInterval),
		nats.MaxPingsOutstanding(MaxPings),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("nats", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats: disconnected", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats: connected again") }),
	}
}

// Credentials authenticate a worker, or a server at an external NATS: a user and password, or a NATS
// credentials file.
type Credentials struct {
	User, Password string
	File           string // of a NATS user JWT and its key
}

// ReadCredentials reads a credentials file: the UID and the secret of an API key of role worker, separated
// by white space, as `millwright key create --role worker` prints them; or a NATS .creds file. It returns
// none for an empty path.
func ReadCredentials(path string) (Credentials, error) {
	if path == "" {
		return Credentials{}, nil
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials: %w", err)
	}
	if strings.Contains(string(text), "BEGIN NATS USER JWT") {
		return Credentials{File: path}, nil
	}

	words := strings.Fields(string(text))
	if len(words) != 2 {
		return Credentials{}, fmt.Errorf(
			"credentials %s: want the UID and the secret of a worker's key, as `millwright key create "+
				"--role worker` prints them",
			path,
		)
	}

	return Credentials{User: words[0], Password: words[1]}, nil
}

// Options returns the NATS options for the credentials.
func (c Credentials) Options() []nats.Option {
	switch {
	case c.File != "":
		return []nats.Option{nats.UserCredentials(c.File)}
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}
	}
	return nil
}

// RedactedURL returns an address without its password.
func RedactedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the given address"
	}
	return u.Redacted()
}

// validKey matches the UID of an API key, which is a part of NATS subjects.
var validKey = regexp.MustCompile(`^key_[0-7][0-9a-hjkmnp-tv-z]{25}$`)

// Connect connects a worker process to the NATS at address with the credentials in file. uid names the
// worker if the credentials, of an external NATS, do not.
func Connect(ctx context.Context, address, file, uid string, log *slog.Logger) (*Client, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	creds, err := ReadCredentials(file)
	if err != nil {
		return nil, err
	}
	if uid == "" {
		uid = creds.User
	}

	if !validKey.MatchString(uid) {
		return nil, fmt.Errorf(
			"worker: the credentials do not name an API key (key_…): make one with `millwright key " +
				"create --role worker`",
		)
	}

	opts := append(Options(log), creds.Options()...)
	nc, err := nats.Connect(address, append(opts, nats.CustomInboxPrefix(Inbox(uid)))...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect to %s: %w", RedactedURL(address), err)
	}

	return NewClient(nc, uid), nil
}

// deniesCredentials reports whether NATS refused the credentials.
func deniesCredentials(err error) bool {
	for _, denied := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
	} {
		if errors.Is(err, denied) {
			return true
		}
	}
	return false
}

// UID returns the worker's UID, which is a part of every subject that it uses.
func (c *Client) UID() string { return c.uid }

// Close ends the connection. Requests in progress fail.
func (c *Client) Close() { c.nc.Close() }

// requestTimeout is how long an answer may take.
const requestTimeout = 5 * time.Second

func (c *Client) ask(ctx context.Context, verb string, r Request, timeout time.Duration) (Answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Answer{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	m, err := c.nc.RequestWithContext(ctx, Subject(c.uid, verb), body)
	if errors.Is(err, nats.ErrMaxPayload) {
		return Answer{}, fmt.Errorf("%s: %w: %w", verb, err, ErrRefused)
	}
	if err != nil && !c.nc.IsConnected() && deniesCredentials(c.nc.LastError()) {
		return Answer{}, fmt.Errorf("%s: NATS refuses the worker's credentials: %w", verb, ErrRefused)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("%s: no server answers: %w: %w", verb, err, ErrUnavailable)
	}

	var a Answer
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return Answer{}, fmt.Errorf("%s: the answer cannot be read: %w", verb, err)
	}

	return a, a.err()
}

func (o *Order) request() Request { return Request{Run: o.RunID, Token: o.Token} }

// Claim waits up to wait for work and returns its order, or nil. name is the display name of the run's
// executor. If ctx ends, it withdraws the claim with Leave and still waits for the answer, so that no order
// is lost. After a reconnect it waits at most as long as an answer takes.
func (c *Client) Claim(ctx context.Context, name string, wait time.Duration) (*Order, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	connected := c.nc.StatusChanged(nats.CONNECTED)
	defer c.nc.RemoveStatusListener(connected)

	go func() { // a lost server does not answer; the others do when the claim is withdrawn
		if _, again := <-connected; !again {
			return // closed: the claim is answered
		}

		c.Leave()
		select {
		case <-ctx.Done():
		case <-time.After(requestTimeout / 5):
			stop()
		}
	}()

	a, err := c.ask(ctx, VerbClaim, Request{Instance: c.instance, Name: name, Wait: wait}, wait+requestTimeout)
	return a.Order, err
}

// Leave withdraws waiting claims, so that they are answered at once.
func (c *Client) Leave() {
	body, err := json.Marshal(Request{Instance: c.instance})
	if err == nil {
		c.nc.Publish(Subject(c.uid, VerbLeave), body)
	}
}

// Report sends a report about this process; nil reports its end.
func (c *Client) Report(ctx context.Context, r *Report) error {
	_, err := c.ask(ctx, VerbReport, Request{Instance: c.instance, Report: r}, requestTimeout)
	return err
}

// Start reports that the worker begins the order. It retries while no server answers. cancel reports a
// request to cancel the run.
func (c *Client) Start(ctx context.Context, o *Order) (cancel bool, err error) {
	for began := time.Now(); ; {
		a, err := c.ask(ctx, VerbStart, o.request(), requestTimeout)
		if !errors.Is(err, ErrUnavailable) || time.Since(began) > Hold {
			return a.Cancel, err
		}

		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Heartbeat renews the order's lease, from now. cancel reports a request to cancel the run.
func (c *Client) Heartbeat(ctx context.Context, o *Order) (cancel bool, err error) {
	a, err := c.ask(ctx, VerbHeartbeat, o.request(), requestTimeout)
	return a.Cancel, err
}

// Append adds messages to the run's conversation. from is the number of earlier messages of this order.
// skills, unless nil, are the advertised skills, and usage is the attempt's use so far. An [OverBudgetError] comes
// after all was added.
func (c *Client) Append(
	ctx context.Context,
	o *Order,
	from int,
	messages []Message,
	skills json.RawMessage,
	usage *Usage,
) error {
	r := o.request()
	r.From, r.Messages, r.Skills, r.Usage = from, messages, skills, usage
	a, err := c.ask(ctx, VerbAppend, r, requestTimeout)
	if err == nil && a.Over != "" {
		return OverBudgetError{a.Over}
	}
	return err
}

// Finish ends the execution and returns the run's state, which is QUEUED if follow-ups wait, or if the run is
// tried again later.
func (c *Client) Finish(ctx context.Context, o *Order, result Result) (RunState, error) {
	r := o.request()
	r.State, r.Message, r.Code, r.Later = result.State, result.Message, result.ErrorCode, result.Later
	r.From, r.Messages = result.From, result.Messages
	r.Usage, r.Outputs, r.Lines = result.Usage, result.Outputs, result.OutputLines
	a, err := c.ask(ctx, VerbFinish, r, requestTimeout)
	return a.State, err
}

// Release returns the run to the queue.
func (c *Client) Release(ctx context.Context, o *Order) error {
	_, err := c.ask(ctx, VerbRelease, o.request(), requestTimeout)
	return err
}

// maxFile is the maximum size of a fetched file, in bytes.
const maxFile = 256 << 20

// File returns the body of one of the order's files. It fetches the file unless the order contains it.
func (c *Client) File(ctx context.Context, o *Order, f File) ([]byte, error) {
	if f.Inline {
		return f.Data, nil
	}

	var body []byte
	digest := ""
	for changed := 0; changed < 5; {
		r := o.request()
		r.Name, r.Offset = f.Name, len(body)
		a, err := c.ask(ctx, VerbFile, r, 4*requestTimeout)
		if err != nil {
			return nil, fmt.Errorf("file %q: %w", f.Name, err)
		}

		if a.Size > maxFile {
			return nil, fmt.Errorf(
				"file %q has %d bytes; at most %d are fetched: %w",
				f.Name,
				a.Size,
				maxFile,
				ErrRefused,
			)
		}

		if digest != "" && a.Digest != digest { // the conversation grew meanwhile
			body, digest = nil, ""
			changed++
			continue
		}

		digest = a.Digest
		body = append(body, a.Data...)
		if len(body) >= a.Size {
			return body, nil
		}
		if len(a.Data) == 0 {
			break
		}
	}

	return nil, fmt.Errorf("file %q cannot be fetched: %w", f.Name, ErrUnavailable)
}

// sendAgain is how often a part of a file is sent while no server answers.
const sendAgain = 5

// PutSnapshot sends the snapshot that the order's execution leaves, with its archive.
func (c *Client) PutSnapshot(ctx context.Context, o *Order, v Snapshot, archive io.Reader) error {
	if err := c.sendParts(ctx, VerbSnapshot, o.request(), v.Size, archive); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}

	r := o.request()
	r.Snapshot = &v
	return c.send(ctx, VerbSnapshot, r, 4*requestTimeout)
}

// checkTimeout is how long a server may check a bundle.
const checkTimeout = 2 * time.Minute

// PutArtifact sends a file that the order's execution leaves for people: the one of this number of the attempt, which
// counts from 0. It is visible once Finish is answered. ErrRefused, with the reason, when the server takes no such
// file; the run goes on.
func (c *Client) PutArtifact(ctx context.Context, o *Order, number int, a Artifact, content io.Reader) error {
	r := o.request()
	r.Number, r.Artifact = number, &a
	if err := c.send(ctx, VerbArtifact, r, requestTimeout); err != nil {
		return err
	}

	r.Artifact = nil
	if err := c.sendParts(ctx, VerbArtifact, r, a.Size, content); err != nil {
		return err
	}

	return c.send(ctx, VerbArtifact, r, checkTimeout)
}

// sendParts sends content of the given size in parts, each as r.
func (c *Client) sendParts(ctx context.Context, verb string, r Request, size int64, content io.Reader) error {
	for part := 0; int64(part)*Chunk < size; part++ {
		r.Part, r.Data = part, make([]byte, min(Chunk, size-int64(part)*Chunk))
		if _, err := io.ReadFull(content, r.Data); err != nil {
			return err
		}
		if err := c.send(ctx, verb, r, 4*requestTimeout); err != nil {
			return err
		}
	}

	return nil
}

// send sends a request again while no server answers.
func (c *Client) send(ctx context.Context, verb string, r Request, timeout time.Duration) error {
	for tries := 1; ; tries++ {
		_, err := c.ask(ctx, verb, r, timeout)
		if !errors.Is(err, ErrUnavailable) || tries == sendAgain {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// FetchSnapshot writes the archive of the order's snapshot to w, and checks that it is whole.
func (c *Client) FetchSnapshot(ctx context.Context, o *Order, w io.Writer) error {
	sum := sha256.New()
	for offset := int64(0); offset < o.Snapshot.Size; {
		r := o.request()
		r.Name, r.Offset = SnapshotFile, int(offset)
		a, err := c.ask(ctx, VerbFile, r, 4*requestTimeout)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if len(a.Data) == 0 || int64(len(a.Data)) > o.Snapshot.Size-offset {
			return fmt.Errorf("snapshot: %d bytes at %d: %w", len(a.Data), offset, ErrRefused)
		}

		sum.Write(a.Data)
		if _, err := w.Write(a.Data); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		offset += int64(len(a.Data))
	}

	if hex.EncodeToString(sum.Sum(nil)) != o.Snapshot.Digest {
		return fmt.Errorf("snapshot: it is not as it was left: %w", ErrRefused)
	}
	return nil
}

// OnCancel calls f with the ID of each run to cancel, until end is called. Heartbeats report the same,
// later.
func (c *Client) OnCancel(f func(runID string)) (end func(), err error) {
	return c.on(VerbCancel, f)
}

// Ask asks a question on behalf of the order's agent, and returns its UID.
func (c *Client) Ask(ctx context.Context, o *Order, q Question) (uid string, err error) {
	r := o.request()
	r.Question = &q
	a, err := c.ask(ctx, VerbAsk, r, requestTimeout)
	return a.UID, err
}

// Inbox returns what the living session of the order's agent has not got, and has later messages sent to it. seen is
// the UID of the last message that it got.
func (c *Client) Inbox(ctx context.Context, o *Order, seen string) (Mail, error) {
	r := o.request()
	r.Seen = seen
	a, err := c.ask(ctx, VerbInbox, r, requestTimeout)
	if err != nil || a.Inbox == nil {
		return Mail{}, err
	}
	return *a.Inbox, nil
}

// OnWake calls f with the ID of each run whose inbox has something, until end is called. A call may be lost.
func (c *Client) OnWake(f func(runID string)) (end func(), err error) { return c.on(VerbWake, f) }

func (c *Client) on(verb string, f func(runID string)) (end func(), err error) {
	sub, err := c.nc.Subscribe(Subject(c.uid, verb), func(m *nats.Msg) { f(string(m.Data)) })
	if err != nil {
		return nil, err
	}
	return func() { sub.Unsubscribe() }, nil
}

// CheckedOut tells the server which commits the execution begins with. Those of the run's first execution stay.
func (c *Client) CheckedOut(ctx context.Context, o *Order, bases []Base) error {
	r := o.request()
	r.Bases = bases
	if _, err := c.ask(ctx, VerbCheckout, r, 4*requestTimeout); err != nil {
		return fmt.Errorf("checkout: %w", err)
	}
	return nil
}
