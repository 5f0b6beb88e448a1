package main

import (
	"net"
	"sync"
	"time"
)

// dribble holds n connections open, on each of which a request comes at a byte a second and never ends, until
// stop is called. What the server closes is opened again.
func dribble(addr string, n int) (stop func(), err error) {
	open := func() (net.Conn, error) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_, err = c.Write([]byte("POST /webhooks/w/slow HTTP/1.1\r\nHost: bench\r\nX-Slow: "))
		}

		return c, err
	}

	conns := make([]net.Conn, 0, n)
	for range n {
		c, err := open()
		if err != nil {
			return nil, err
		}

		conns = append(conns, c)
	}

	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()

		for {
			select {
			case <-done:
				for _, c := range conns {
					_ = c.Close()
				}
				return
			case <-tick.C:
			}

			for i, c := range conns {
				if _, err := c.Write([]byte("x")); err == nil {
					continue
				}

				_ = c.Close()
				if again, err := open(); err == nil {
					conns[i] = again
				}
			}
		}
	})

	return func() { close(done); writer.Wait() }, nil
}
