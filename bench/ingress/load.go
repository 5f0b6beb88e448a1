package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"millwright/schema/provider"
)

// soakRuns is of how many deliveries of a soak one starts a run.
const soakRuns = 10

// ids makes the delivery IDs of all loads unique.
var ids atomic.Int64

// eventOf returns an event of about so many bytes, as code hosts send them: objects with few keys, and values
// of which the addresses are alike and the identifiers are not. It is the same in every run.
func eventOf(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := &bytes.Buffer{}
	fmt.Fprint(text, `{"action":"benchmark","items":[`)
	for n := 0; text.Len() < size-300 || n == 0; n++ {
		if n > 0 {
			text.WriteByte(',')
		}

		owner, sha := random.Uint32(), random.Uint64()
		fmt.Fprintf(
			text,
			`{"id":%d,"sha":"%016x%016x","author":"user-%d",`+
				`"url":"https://code.example/user-%d/project/commits/%016x",`+
				`"created_at":"2026-11-%02dT%02d:%02d:%02dZ","verified":%t,"parents":%d}`,
			random.Uint32(),
			sha,
			random.Uint64(),
			owner%10_000,
			owner%10_000,
			sha,
			1+random.IntN(28),
			random.IntN(24),
			random.IntN(60),
			random.IntN(60),
			random.IntN(2) == 0,
			random.IntN(3),
		)
	}

	fmt.Fprint(text, `],"text":"`)
	for text.Len() < size-2 {
		text.WriteByte("abcdefghijklmnopqrstuvwxyz     "[random.IntN(31)])
	}

	fmt.Fprint(text, `"}`)
	return text.Bytes()
}

type measurement struct {
	answers  int
	rate     float64
	p50, p99 time.Duration
	memory   int64         // resident bytes of the server at the end
	cpu      time.Duration // processor time of the server for a request
}

// load sends signed deliveries over a number of connections, in turn to each address, each as fast as it is answered.
func load(addrs []string, path string, o options, duration time.Duration) (measurement, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return measurement{}, err
	}

	body, event := eventOf(o.size), ""
	var ignored []byte
	if o.soak > 0 {
		ignored = bytes.Replace(body, []byte("benchmark"), []byte("something"), 1)
	}
	if o.github {
		event, body, _ = provider.Example("github", "pull_request_opened")
		key = []byte(secret)
	}

	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(duration)
	for i := range o.connections {
		wg.Go(func() {
			s := &sender{path: path, key: key, body: body, ignored: ignored, event: event}
			took, err := s.run(addrs[i%len(addrs)], end)
			mu.Lock()
			defer mu.Unlock()

			all = append(all, took...)
			if err != nil {
				failed = err
			}
		})
	}

	wg.Wait()
	if failed != nil || len(all) == 0 {
		return measurement{}, fmt.Errorf("%d answers, then: %w", len(all), failed)
	}

	slices.Sort(all)
	return measurement{
		answers: len(all),
		rate:    float64(len(all)) / time.Since(start).Seconds(),
		p50:     all[len(all)/2],
		p99:     all[len(all)*99/100],
	}, nil
}

type sender struct {
	path  string
	key   []byte
	body  []byte
	event string // of GitHub; "" signs as Standard Webhooks does

	ignored []byte // sent nine times of ten, unless nil: a body that starts no run
}

func (s *sender) run(addr string, end time.Time) ([]time.Duration, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()

	r := bufio.NewReaderSize(c, 4<<10)
	mac := hmac.New(sha256.New, s.key)
	var out bytes.Buffer
	var took []time.Duration
	for n := 0; ; n++ {
		body := s.body
		if s.ignored != nil && n%soakRuns > 0 {
			body = s.ignored
		}

		now := time.Now()
		if now.After(end) {
			return took, nil
		}

		id, ts := "msg_"+strconv.FormatInt(
			ids.Add(1),
			36,
		)+strconv.FormatInt(
			end.UnixNano(),
			36,
		), strconv.FormatInt(
			now.Unix(),
			10,
		)

		out.Reset()
		fmt.Fprintf(
			&out,
			"POST %s HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"+
				"%sContent-Length: %d\r\n\r\n",
			s.path,
			s.signature(mac, body, id, ts),
			len(body),
		)

		out.Write(body)
		sent := time.Now()
		if _, err := c.Write(out.Bytes()); err != nil {
			return took, err
		}

		status, err := answer(r)
		if err != nil {
			return took, err
		}
		if status != 202 {
			return took, fmt.Errorf("answer %d", status)
		}

		took = append(took, time.Since(sent))
	}
}

// signature returns the lines of the headers that sign a request.
func (s *sender) signature(mac hash.Hash, body []byte, id, ts string) string {
	mac.Reset()
	if s.event != "" {
		mac.Write(body)
		return fmt.Sprintf("X-GitHub-Event: %s\r\nX-GitHub-Delivery: %s\r\nX-Hub-Signature-256: sha256=%x\r\n",
			s.event, id, mac.Sum(nil))
	}

	io.WriteString(mac, id+"."+ts+".")
	mac.Write(body)
	return fmt.Sprintf("webhook-id: %s\r\nwebhook-timestamp: %s\r\nwebhook-signature: v1,%s\r\n", id, ts,
		base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// answer reads one answer and returns its status.
func answer(r *bufio.Reader) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}

		switch {
		case first && len(line) > 12:
			status, _ = strconv.Atoi(string(line[9:12]))
		case len(line) <= 2:
			_, err := r.Discard(length)
			return status, err
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			length, _ = strconv.Atoi(strings.TrimSpace(string(line[16:])))
		}
	}
}
