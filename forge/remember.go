package forge

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// maxRemembered bounds the remembered answers of one Memory, in bytes.
const maxRemembered = 4 << 20

// Memory holds answers of forges that may still be true. With it in the context, a request asks for an answer
// only if there is a newer one. GitHub does not count such a request against the limits of the account. It is
// safe for concurrent use. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	answers map[string]remembered // by address
	bytes   int
}

type remembered struct {
	tag    string
	header http.Header
	body   []byte
}

type memoryKey struct{}

// WithMemory returns a context whose requests that only read use m.
func WithMemory(ctx context.Context, m *Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// memoryOf returns the memory for a request; nil: none.
func memoryOf(req *http.Request) *Memory {
	m, _ := req.Context().Value(memoryKey{}).(*Memory)
	if req.Method != http.MethodGet {
		return nil
	}
	return m
}

// ask makes a request ask for a newer answer than the remembered one.
func (m *Memory) ask(req *http.Request) {
	if m == nil {
		return
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if had, ok := m.answers[req.URL.String()]; ok {
		req.Header.Set("If-None-Match", had.tag)
	}
}

// recall puts the remembered answer in place of one that names no newer one.
func (m *Memory) recall(res *http.Response) {
	if m == nil || res.StatusCode != http.StatusNotModified {
		return
	}

	m.mu.Lock()
	had, ok := m.answers[res.Request.URL.String()]
	m.mu.Unlock()
	if !ok {
		return
	}

	res.Body.Close()
	res.StatusCode, res.Status = http.StatusOK, "200 OK"
	res.Header = had.header.Clone()
	res.Body = io.NopCloser(bytes.NewReader(had.body))
	res.ContentLength = int64(len(had.body))
}

// keep remembers a checked answer, and begins anew when there is no room.
func (m *Memory) keep(res *http.Response) {
	tag := res.Header.Get("ETag")
	if m == nil || tag == "" || res.StatusCode != http.StatusOK {
		return
	}

	body, err := io.ReadAll(res.Body)
	if err != nil {
		return
	}
	res.Body = io.NopCloser(bytes.NewReader(body))

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil || m.bytes+len(body) > maxRemembered {
		m.answers, m.bytes = map[string]remembered{}, 0
	}
	if len(body) > maxRemembered {
		return
	}

	address := res.Request.URL.String()
	m.bytes += len(body) - len(m.answers[address].body)
	m.answers[address] = remembered{tag: tag, header: res.Header.Clone(), body: body}
}
