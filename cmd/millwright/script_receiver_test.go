package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdReceiver starts a server at $LOCAL that answers 200 and writes each request that it gets to a file of
// a directory, 1.http and so on: receiver DIR.
func cmdReceiver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: receiver DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(dir, 0o755))
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(n)+".http"))
		if err == nil {
			defer f.Close()
			fmt.Fprintf(f, "%s %s HTTP/1.1\r\n", r.Method, r.RequestURI)
			_ = r.Header.Write(f)
			_, _ = io.WriteString(f, "\r\n")
			_, err = io.Copy(f, r.Body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	ts.Defer(srv.Close)
	ts.Setenv("LOCAL", srv.URL)
}
