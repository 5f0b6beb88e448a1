package statetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a port of 127.0.0.1 on which nobody listens. It is below those that systems give to
// connections and to listeners on port 0, so that only another FreePort may come upon it.
func FreePort() (string, error) {
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("no free port of 127.0.0.1 in 100 tries")
}
