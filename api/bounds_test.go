package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"millwright/api"
	"millwright/bounds"
	"millwright/state"
	"millwright/state/statetest"
)

// bodies is an API with an endpoint for key holders and one for anybody.
func bodies(t *testing.T, s *state.Store, proxies ...netip.Prefix) (a *api.API, key string) {
	t.Helper()
	a = api.New(api.Config{Store: s, TrustedProxies: proxies})
	take := func(context.Context, *struct{ Body map[string]any }) error { return nil }
	api.HandleEmpty(a, api.Operation(http.MethodPost, "/keyed", "keyed", state.RoleViewer, "Take a body"), take)
	open := api.WithBounds(api.Operation(http.MethodPost, "/open", "open", "", "Take a body"), api.Bounded{Keyless: 1 << 20})
	api.HandleEmpty(a, open, take)
	_, key, err := s.CreateKey(t.Context(), "ada", state.RoleViewer, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, key
}

func post(a *api.API, sender, path, key string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, api.Base+path, body)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(sender), 1234).String()
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

func TestARightKeyIsNotLimitedByWrongOnes(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		a, key := bodies(t, s)
		got := map[int]int{}
		for i := range 40 {
			got[post(a, "192.0.2.1", "/keyed", fmt.Sprintf("mw_wrong-%d", i), strings.NewReader("{}")).Code]++
		}
		if got[401] != 30 || got[429] != 10 {
			t.Errorf("answers to wrong keys: %v", got)
		}
		if w := post(a, "192.0.2.1", "/keyed", key, strings.NewReader("{}")); w.Code != http.StatusNoContent {
			t.Errorf("the right key from that address: %d %s", w.Code, w.Body)
		}
	})
}

func TestANetworkOfWrongKeysLimitsNobodyElse(t *testing.T) {
	statetest.Each(t, func(t *testing.T, s *state.Store) {
		a, key := bodies(t, s)
		for i := range 500 {
			post(a, fmt.Sprintf("2001:db8:1:%x::1", i), "/keyed", "mw_wrong", strings.NewReader("{}"))
		}
		for _, sender := range []string{"2001:db8:2::1", "192.0.2.7"} {
			if w := post(a, sender, "/keyed", "mw_wrong", strings.NewReader("{}")); w.Code != http.StatusUnauthorized {
				t.Errorf("the first wrong key of %s: %d", sender, w.Code)
			}
		}
		if w := post(a, "2001:db8:1:1::1", "/keyed", key, strings.NewReader("{}")); w.Code != http.StatusNoContent {
			t.Errorf("the right key from that network: %d", w.Code)
		}
	})
}

// A body that would grow a hundred times is refused before it is parsed.
func TestBodiesThatGrowAreRefused(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	a, key := bodies(t, s)
	for _, c := range []struct {
		path, key, value string
		size             int
	}{
		{"/open", "", `{"":0},`, 8 << 20},
		{"/open", "", `{"":0},`, 1<<20 - 100},
		{"/open", key, `[],`, 8<<20 - 100},
		{"/keyed", key, `{"":0},`, 8<<20 - 100},
		{"/keyed", key, `"",`, 1 << 20},
	} {
		body := `{"x":[` + strings.Repeat(c.value, c.size/len(c.value)) + `0]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := post(a, "192.0.2.1", c.path, c.key, strings.NewReader(body))
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s, %d bytes of %s: %d %.200s", c.path, len(body), c.value, w.Code, w.Body)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 6*uint64(len(body))+1<<20 {
			t.Errorf("%s, %d bytes of %s: allocated %d", c.path, len(body), c.value, took)
		}
	}
	large := `{"x":"` + strings.Repeat("x", 2<<20) + `"}`
	if w := post(a, "192.0.2.1", "/open", "", strings.NewReader(large)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB without a key: %d", w.Code)
	}
	if w := post(a, "192.0.2.1", "/open", key, strings.NewReader(large)); w.Code != http.StatusNoContent {
		t.Errorf("2 MiB with a key: %d %.200s", w.Code, w.Body)
	}
}

// arrived is a body of which only a part has come so far.
type arrived struct {
	io.Reader
	reached chan struct{}
	rest    chan struct{}
}

func (b *arrived) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.reached <- struct{}{}
		<-b.rest
		return n, iotest.ErrTimeout
	}
	return n, err
}

// Bodies that are under way are bounded in all, for each sender, and for strangers apart from key holders.
func TestBytesInFlightAreBounded(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	a, key := bodies(t, s)
	rest, reached := make(chan struct{}), make(chan struct{})
	answers := make(chan int, 100)
	refused, held := 0, 0
	for i := range 100 {
		body := &arrived{strings.NewReader(strings.Repeat(" ", 1<<20-10)), reached, rest}
		go func() { answers <- post(a, fmt.Sprintf("192.0.2.%d", i%3), "/open", "", body).Code }()
		select {
		case <-reached:
			held++
		case code := <-answers:
			if refused++; code != http.StatusServiceUnavailable {
				t.Fatalf("answer %d", code)
			}
		}
	}
	if total := a.Bounds().Keyless.Held(); total > 16<<20 || held == 0 || refused == 0 {
		t.Errorf("%d bytes of %d bodies are held, %d were refused", total, held, refused)
	}
	if w := post(a, "198.51.100.1", "/open", "", strings.NewReader(`{}`)); w.Code != http.StatusNoContent {
		t.Errorf("another sender: %d", w.Code)
	}
	if w := post(a, "192.0.2.1", "/open", key, strings.NewReader(`{"x":"`+strings.Repeat("x", 4<<20)+`"}`)); w.Code != http.StatusNoContent {
		t.Errorf("a key holder of the same address: %d", w.Code)
	}
	close(rest)
	for range held {
		if code := <-answers; code != http.StatusBadRequest {
			t.Errorf("a body that broke off: %d", code)
		}
	}
	if total := a.Bounds().Keyless.Held(); total != 0 {
		t.Errorf("%d bytes are held in the end", total)
	}
}

// Senders behind a trusted proxy are told apart.
func TestWrongKeysBehindAProxy(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	a, _ := bodies(t, s, netip.MustParsePrefix("10.0.0.0/8"))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr, r.Header["X-Forwarded-For"] = "10.0.0.1:1", []string{"192.0.2.5"}
	if got := a.SenderOf(r); got != "192.0.2.5" {
		t.Errorf("sender %q", got)
	}
}

func TestLookUpsOfSuspectsAreBounded(t *testing.T) {
	s := statetest.Open(t, statetest.SQLite(t))
	a, key := bodies(t, s)
	rate := bounds.New(bounds.Config{}).WrongKeys
	if _, problem := a.Identify(t.Context(), rate, "192.0.2.7", key); problem != nil {
		t.Fatal(problem)
	}
	for range 30 {
		if _, problem := a.Identify(t.Context(), rate, "192.0.2.1", "mw_wrong"); problem.Code != "authentication_required" {
			t.Fatal(problem)
		}
	}
	var leave []func()
	for range 2 {
		done, ok := a.Bounds().Suspects.Enter(t.Context(), "192.0.2.9")
		if !ok {
			t.Fatal("no slot")
		}
		leave = append(leave, done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, problem := a.Identify(ctx, rate, "192.0.2.1", "mw_wrong"); problem == nil || problem.Code != "resource_unavailable" {
		t.Errorf("no turn: %v", problem)
	}
	if _, problem := a.Identify(t.Context(), rate, "192.0.2.1", key); problem != nil {
		t.Errorf("a key that was right before, of the same address: %v", problem)
	}
	for _, done := range leave {
		done()
	}
	_, problem := a.Identify(t.Context(), rate, "192.0.2.1", "mw_wrong")
	if problem == nil || problem.Code != "rate_limited" || problem.GetHeaders().Get("Retry-After") == "" {
		t.Errorf("spent: %v", errors.New(problem.Detail))
	}
}

// TestTooLargeBodiesOfKeyHoldersAreAnswered has a client send its whole body before it reads the answer.
func TestTooLargeBodiesOfKeyHoldersAreAnswered(t *testing.T) {
	a, key := bodies(t, statetest.Open(t, statetest.SQLite(t)))
	srv := httptest.NewServer(a)
	defer srv.Close()

	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}

	const size = bounds.MaxBody + 1<<20
	_, err = fmt.Fprintf(conn, "POST %s/keyed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", api.Base, key, size, strings.Repeat("x", size))
	if err != nil {
		t.Fatalf("sending the body: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", resp.StatusCode)
	}
}
