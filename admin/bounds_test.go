package admin_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/admin"
	"millwright/state"
)

// A key holder is not a stranger: neither rationed as one, nor bounded as low.
func TestValidateWithAKeyIsNotRationed(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		limited := 0
		for range 40 {
			if w.call("", "POST", "/factory-files/validate", `{"files": []}`).status == 429 {
				limited++
			}
		}
		if limited == 0 {
			t.Error("requests without a key are not rationed")
		}
		for _, role := range []state.Role{state.RoleViewer, state.RoleAdmin} {
			w.call(role, "POST", "/factory-files/validate", `{"files": []}`).want(200)
		}
		large := files(map[string]string{"README.md": strings.Repeat("x", 3<<20)})
		w.call(state.RoleViewer, "POST", "/factory-files/validate", large).want(200)
	})
}

// stall opens n connections on which a request with this head never continues.
func (w *world) stall(n int, head string) {
	w.t.Helper()
	addr, _, _ := strings.Cut(strings.TrimPrefix(w.url, "http://"), "/")
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, head); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Bodies that do not arrive take no slot: neither push notices nor validations are refused for them.
func TestStalledBodiesTakeNoSlot(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		f := w.factory("hub", state.Source{Kind: "git"}, nil)
		push := "/factory/" + f.UID + "/push"
		for _, path := range []string{push, "/factory-files/validate"} {
			w.stall(12, "POST /api/v1"+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n{")
		}
		w.call("", "POST", "/factory-files/validate", `{"files": []}`).want(200)
		w.call("", "POST", push, "{}").problem(401, "authentication_required")
	})
}

// An answer to a request that is too large arrives, though its body was not read.
func TestTooLargeIsAnswered(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		addr, _, _ := strings.Cut(strings.TrimPrefix(w.url, "http://"), "/")
		for _, length := range []int{2<<20 + 1, 100 << 20} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "POST /api/v1/factory-files/validate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("x", 1000))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%d bytes: %v %v", length, resp, err)
			}
		}
	})
}

// Validations at once are bounded: trees wait for their turn.
func TestValidationsWaitForTheirTurn(t *testing.T) {
	each(t, admin.Config{}, func(w *world) {
		leave, ok := w.bounds.Validations.Enter(context.Background(), "192.0.2.1")
		if !ok {
			t.Fatal("no slot")
		}
		w.call("", "POST", "/factory-files/validate", `{"files": []}`).problem(503, "resource_unavailable")
		w.call(state.RoleViewer, "POST", "/factory-files/validate", `{"files": []}`).want(200)
		leave()
		w.call("", "POST", "/factory-files/validate", `{"files": []}`).want(200)
	})
}
