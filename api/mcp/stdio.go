package mcp

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"millwright/bounds"
)

// Serve answers one client over its standard input and output, until the input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, cfg Config) error {
	catalog, err := newCatalog()
	if err != nil {
		return err
	}

	return catalog.server(cfg).Run(ctx, &sdk.IOTransport{
		Reader:        io.NopCloser(in),
		Writer:        unclosed{out},
		MaxLineLength: bounds.MaxBody,
	})
}

// unclosed is a writer that others close.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }
