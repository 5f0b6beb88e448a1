package sandbox

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// maxForwarded is how many connections to the proxy of the run are carried at once.
const maxForwarded = 128

// forward listens on the loopback of the sandbox, carries connections to the proxy of the run, and names the
// listener to the command as its proxy.
func (p *plan) forward() error {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the proxy of the sandbox: %w", err)
	}

	address := "http://" + ln.Addr().String()
	p.Env = withVariables(p.Env, map[string]string{
		"HTTP_PROXY": address, "HTTPS_PROXY": address, "http_proxy": address, "https_proxy": address,
		"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
		"NODE_USE_ENV_PROXY": "1", // else Node's fetch does without
	})

	slots := make(chan struct{}, maxForwarded)
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil { // as when there are no more descriptors
				time.Sleep(10 * time.Millisecond)
				continue
			}

			slots <- struct{}{}
			go func() {
				defer func() { <-slots }()
				carry(client)
			}()
		}
	}()
	return nil
}

// withVariables sets variables in an environment.
func withVariables(env []string, set map[string]string) (all []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if _, replaced := set[name]; !replaced {
			all = append(all, v)
		}
	}
	for name, value := range set {
		all = append(all, name+"="+value)
	}
	return all
}

// carry passes the bytes of a connection to the proxy, and back.
func carry(client net.Conn) {
	defer client.Close()

	proxy, err := net.Dial("unix", socketPath)
	if err != nil {
		return
	}
	defer proxy.Close()

	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if err != nil {
			to.Close()
			from.Close()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}
	both.Go(func() { pass(proxy, client) })
	both.Go(func() { pass(client, proxy) })
	both.Wait()
}
