package main

import (
	"fmt"
	"path/filepath"
	"time"
)

type options struct {
	few, many, rounds, connections, rate, queued, workers, pairs int
	duration                                                     time.Duration
	dir, postgres, before, restart, only                         string
	keep, backlog                                                bool
}

const apiKey = "mw_benchmark-key-of-thirty-two-characters-or-more"

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func mustAbs(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return abs
}
