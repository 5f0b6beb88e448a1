package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ids makes the delivery IDs of all loads unique.
var ids atomic.Int64

// load sends signed deliveries over a number of connections, each as fast as it is answered.
func load(addr, path string, o options, duration time.Duration) (measurement, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return measurement{}, err
	}

	body := []byte(`{"event":"benchmark","text":"` + strings.Repeat("x", max(o.size-31, 0)) + `"}`)
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(duration)
	for range o.connections {
		wg.Go(func() {
			took, err := (&sender{path: path, key: key, body: body}).run(addr, end)
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
	path string
	key  []byte
	body []byte
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
	for {
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

		mac.Reset()
		io.WriteString(mac, id+"."+ts+".")
		mac.Write(s.body)
		out.Reset()
		fmt.Fprintf(
			&out,
			"POST %s HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nContent-Type: application/json\r\nwebhook-id: %s\r\nwebhook-timestamp: %s\r\nwebhook-signature: v1,%s\r\nContent-Length: %d\r\n\r\n",
			s.path,
			id,
			ts,
			base64.StdEncoding.EncodeToString(mac.Sum(nil)),
			len(s.body),
		)

		out.Write(s.body)
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
