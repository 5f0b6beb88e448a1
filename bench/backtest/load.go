package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"millwright/bench/hostile/attack"
)

// load is deliveries to a webhook: count of them, or as many as come at a rate in a time.
type load struct {
	addr        string
	hook        attack.Hook
	connections int
	size        int
	count       int
	rate        int
	during      time.Duration
}

// send sends the deliveries and returns how long their answers took. At a rate, that begins when a delivery
// was to be sent.
func (l load) send(ctx context.Context) ([]time.Duration, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: l.connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}

	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var next atomic.Int64
	var senders sync.WaitGroup
	began := time.Now()
	for range l.connections {
		senders.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				due := time.Now()
				if l.rate > 0 {
					due = began.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
				}
				if l.count > 0 && n >= l.count || l.count == 0 && due.Sub(began) >= l.during {
					return
				}

				time.Sleep(time.Until(due))
				err := l.deliver(ctx, client, n)
				answered := time.Since(due)
				mu.Lock()
				took = append(took, answered)
				if err != nil {
					failed = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}

	senders.Wait()
	return took, failed
}

func (l load) deliver(ctx context.Context, client *http.Client, n int) error {
	target := "http://" + l.addr + l.hook.Path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(l.event(n)))
	if err != nil {
		return err
	}

	r.Header.Set("Authorization", "Bearer "+l.hook.Token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("answer %d: %s", answer.StatusCode, text)
	}
	return err
}

// event returns a body of about the load's size, as code hosts send them: objects with few keys, and values
// of which the addresses are alike and the identifiers are not.
func (l load) event(n int) []byte {
	random := rand.New(rand.NewPCG(uint64(n), uint64(time.Now().UnixNano())))
	text := &bytes.Buffer{}
	fmt.Fprintf(text, `{"status":"%s","commits":[`, []string{"opened", "closed", "passed"}[n%3])
	for i := 0; i == 0 || text.Len() < l.size-200; i++ {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(text, `{"id":%d,"sha":"%016x%016x","author":"user-%d","verified":%t,`+
			`"url":"https://code.example/acme/shop/commits/%016x"}`,
			random.Uint32(), random.Uint64(), random.Uint64(), random.IntN(10_000), i%2 == 0, random.Uint64())
	}

	fmt.Fprintf(text, `],"number":%d}`, random.Uint64()>>12)
	return text.Bytes()
}
