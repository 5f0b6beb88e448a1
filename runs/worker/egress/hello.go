package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

// extensionECH is the TLS extension that encrypts the name of the server (RFC 9849).
const extensionECH = 0xfe0d

// Reasons why a TLS hello is refused.
var (
	errNoHello = errors.New("no TLS hello came, or not all of it in time")
	errNoName  = errors.New("the TLS hello names no host")
	errHidden  = errors.New("the TLS hello may hide another host: encrypted client hello is not passed on")
	errRead    = errors.New("the hello is read")
)

// readHello reads the TLS hello of a client, which may come in pieces, and returns the name of the server in
// it, and all bytes that were read.
func readHello(in *bufio.Reader, client net.Conn) (name string, read []byte, err error) {
	r := &recording{Conn: client, in: in}
	err = errNoHello
	server := tls.Server(r, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, err = hello.ServerName, nil
			switch {
			case slices.Contains(hello.Extensions, extensionECH):
				err = errHidden
			case name == "":
				err = errNoName
			}
			return nil, errRead
		},
	})
	server.Handshake()
	return name, r.read.Bytes(), err
}

// recording is a connection that records what is read from it, and drops what is written.
type recording struct {
	net.Conn
	in   *bufio.Reader
	read bytes.Buffer
}

const maxHello = 64 << 10 // bytes of a TLS hello

func (r *recording) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.read.Write(b[:n])
	if err == nil && r.read.Len() > maxHello {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (*recording) Write(b []byte) (int, error)      { return len(b), nil }
func (*recording) Close() error                     { return nil }
func (*recording) SetDeadline(time.Time) error      { return nil }
func (*recording) SetWriteDeadline(time.Time) error { return nil }
