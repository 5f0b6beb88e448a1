// Package conformance holds the requests of the conformance kit. Its README describes their form.
package conformance

import "embed"

// Files are the cases, one a line, in files by topic.
//
//go:embed *.jsonl
var Files embed.FS
