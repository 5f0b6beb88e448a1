package attack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Attack is something that hostile senders do.
type Attack struct {
	Name string
	// run attacks until ctx ends, and calls started once all of it has been under way.
	run func(ctx context.Context, t *Target, started func())
}

// All returns every attack.
func All() []Attack {
	return []Attack{
		{"320 slow bodies", slowBodies},
		{"10,000 idle connections", idle},
		{"8 validations of 8 MB", validations},
		{"240 arrays of zeros", zeros},
		{"wrong keys", wrongKeys},
	}
}

// Run makes the attacks until stop is called. started is closed once all of them have been under way.
func (t *Target) Run(attacks ...Attack) (started <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running, beginning sync.WaitGroup
	for _, a := range attacks {
		beginning.Add(1)
		running.Go(func() { a.run(ctx, t, sync.OnceFunc(beginning.Done)) })
	}

	all := make(chan struct{})
	go func() {
		beginning.Wait()
		close(all)
	}()
	return all, func() {
		cancel()
		running.Wait()
	}
}

// slowBodies announces 320 large bodies to a webhook that needs no credential up to then, more than old
// servers had room for, and sends nothing of half of them, and a byte in a while of the rest.
func slowBodies(ctx context.Context, t *Target, started func()) {
	head := "POST " + t.Signed.Path + " HTTP/1.1\r\nHost: x\r\n" +
		"X-Hub-Signature-256: sha256=00\r\nContent-Length: 262144\r\n\r\n"

	from := func(i int) string { return fmt.Sprintf("127.0.1.%d", 1+i%2) }
	more := func(i int) string { return strings.Repeat("x", i%2) }
	t.hold(ctx, 320, from, func(int) string { return head }, more, started)
}

// idle holds connections from forty addresses: half of them begin no request, half never send its body.
func idle(ctx context.Context, t *Target, started func()) {
	from := func(i int) string { return fmt.Sprintf("127.0.2.%d", 1+i%40) }
	head := func(i int) string {
		if i%2 == 0 {
			return ""
		}
		return "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
	}

	t.hold(ctx, 10_000, from, head, nil, started)
}

// hold opens n connections, writes the head of a request to each, and then, once a second, what more says.
// Those that the server ends are opened anew.
func (t *Target) hold(
	ctx context.Context,
	n int,
	from, head func(int) string,
	more func(int) string,
	started func(),
) {
	conns := make([]net.Conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()

	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	for {
		for i := range conns {
			if ctx.Err() != nil {
				return
			}
			if conns[i] != nil && ended(conns[i]) {
				_ = conns[i].Close()
				conns[i] = nil
			}

			if conns[i] == nil {
				if conns[i] = t.dial(ctx, from(i)); conns[i] != nil {
					_, _ = io.WriteString(conns[i], head(i))
				}
			} else if more != nil {
				_, _ = io.WriteString(conns[i], more(i))
			}
		}

		started()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ended reports whether the server has ended a connection.
func ended(c net.Conn) bool {
	var b [512]byte
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Microsecond))
	_, err := c.Read(b[:])
	timeout, ok := err.(net.Error)
	return err != nil && !(ok && timeout.Timeout())
}

// dial connects from an address, or returns nil.
func (t *Target) dial(ctx context.Context, from string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil
	}
	return c
}

// validations sends eight trees of no file, whose rest grows a hundred times when it is parsed wholly.
func validations(ctx context.Context, t *Target, started func()) {
	large := `{"files":[],"x":[` + strings.Repeat(`{"":0},`, 8<<20/7-4) + `0]}`
	small := `{"files":[],"x":[` + strings.Repeat(`{"":0},`, 2<<20/7-4) + `0]}`

	from := func(i int) string { return fmt.Sprintf("127.0.3.%d", 1+i) }
	request := func(i, round int) string {
		body := large
		if round%2 == 1 {
			body = small
		}
		return post("/api/v1/factory-files/validate", body, "Content-Type: application/json")
	}

	t.flood(ctx, 8, 8, 0, from, request, started)
}

// zeros sends, every fifteen seconds, 240 deliveries at once with the right token that grow a hundred times
// when they are parsed wholly. By default four senders may send so many in a minute.
func zeros(ctx context.Context, t *Target, started func()) {
	body := "[" + strings.Repeat("0,", 131_060) + "0]"

	from := func(i int) string { return fmt.Sprintf("127.0.4.%d", 1+i%4) }
	request := func(i, round int) string {
		unique := fmt.Sprintf("[%d,%s", 100_000*round+i, body[1:]) // not the same body twice
		return post(t.Filtered.Path, unique, "Authorization: Bearer "+t.Filtered.Token,
			fmt.Sprintf("X-Service-Delivery-Id: zeros-%d-%d", i, round))
	}

	t.flood(ctx, 240, 240, 15*time.Second, from, request, started)
}

// wrongKeys tries one key after the other.
func wrongKeys(ctx context.Context, t *Target, started func()) {
	from := func(i int) string { return fmt.Sprintf("127.0.5.%d", 1+i%4) }
	request := func(i, round int) string {
		key := fmt.Sprintf("mw_wrong-%d-%d", i, round)
		return "GET /api/v1/factory HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n\r\n"
	}

	t.flood(ctx, 8, 500, 0, from, request, started)
}

// post is a request with a body.
func post(path, body string, header ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(header, "\r\n") +
		fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// flood sends requests from n senders at once, each again when it is answered and the pause is over, and
// calls started after enough of them were answered or broken off.
func (t *Target) flood(
	ctx context.Context,
	n, enough int,
	pause time.Duration,
	from func(int) string,
	request func(i, round int) string,
	started func(),
) {
	var done atomic.Int64
	var senders sync.WaitGroup
	for i := range n {
		senders.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				t.exchange(ctx, from(i), request(i, round))
				if done.Add(1) >= int64(enough) {
					started()
				}

				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}

	senders.Wait()
}

// exchange sends one request over a connection of its own and returns the status of the answer, 0 when there
// is none.
func (t *Target) exchange(ctx context.Context, from, request string) int {
	c := t.dial(ctx, from)
	if c == nil {
		return 0
	}
	defer c.Close()

	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()

	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, request) // it may be answered before its end
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}

	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// Deliver sends a small delivery with the right token from an address of nobody else, over a connection of
// its own, and returns the status of the answer, 0 when there is none within a minute.
func (t *Target) Deliver(ctx context.Context, number int) int {
	body := fmt.Sprintf(`{"status":"ok","n":%d}`, number)
	request := post(t.Token.Path, body, "Authorization: Bearer "+t.Token.Token,
		fmt.Sprintf("X-Service-Delivery-Id: honest-%d", number))

	return t.exchange(ctx, "127.0.9.9", request)
}
