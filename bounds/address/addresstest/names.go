// Package addresstest resolves names for tests of connections whose destination strangers choose.
package addresstest

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
)

// Names is a server of the DNS.
type Names struct {
	// Answers are the addresses of each name, which it has one after another, and the last one for ever.
	Answers map[string][]string

	mu sync.Mutex // guards the answers
}

// Resolver serves the names until the test ends, and returns what asks them.
func (n *Names) Resolver(t *testing.T) *net.Resolver {
	t.Helper()

	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })

	go func() {
		for {
			query := make([]byte, 512)
			size, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			conn.WriteTo(n.answer(query[:size]), from)
		}
	}()

	at := conn.LocalAddr().String()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	}

	return &net.Resolver{PreferGo: true, Dial: dial}
}

// answer answers a query of the DNS for an address of IPv4, and any other query with nothing.
func (n *Names) answer(query []byte) []byte {
	var labels []string
	at := 12

	for query[at] != 0 {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}

	end := at + 5
	kind := binary.BigEndian.Uint16(query[at+1:])

	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x81, 0x80
	clear(reply[6:12])

	const typeA = 1
	n.mu.Lock()
	defer n.mu.Unlock()

	name := strings.Join(labels, ".")
	all := n.Answers[name]
	if kind != typeA || len(all) == 0 {
		return reply
	}
	if len(all) > 1 {
		n.Answers[name] = all[1:]
	}

	reply[7] = 1
	reply = append(reply, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, net.ParseIP(all[0]).To4()...)
}
