package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A check of a tree of usual size ends before any garbage is worth collecting, and one of 10,000 files
// should need no more than 64 MB. So collection begins late, and in earnest at a limit, which grows with
// what is read so that large trees do not pay for it. bench/validate measures both.
const (
	lateCollection = 400      // percent
	memoryLimit    = 32 << 20 // bytes, at first
	memoryForEach  = 3 << 9   // bytes for each file or directory opened
)

// thrift sets the collector up for a check, unless the user did, and returns what undoes it.
func thrift() (undo func()) {
	if chosen() {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(lateCollection), debug.SetMemoryLimit(memoryLimit)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

// allowMemory raises the limit for a tree in which so much was opened.
func allowMemory(opened int64) {
	if limit := opened * memoryForEach; limit > memoryLimit && !chosen() {
		debug.SetMemoryLimit(limit)
	}
}

// serverCollection begins collection when there is twice as much garbage as there are live bytes: a server
// has few of the latter, and a delivery costs less processor time so. bench/ingress measures it.
const serverCollection = 200 // percent

// A server that holds much for its senders collects garbage in earnest from serverMemory on, so that twice
// as much garbage does not come on top of it. One that needs more by itself gets more.
const (
	serverMemory = 304 << 20 // bytes
	memoryCheck  = time.Second
)

// A start ends before any garbage is worth collecting. A server returns to the system what only its start needed,
// startTime after it began: on an idle server the next collection comes minutes later.
const (
	startCollection = 400 // percent
	startTime       = 2 * time.Second
)

// CollectLate sets the collector up for a server, unless the user did, until ctx ends.
func CollectLate(ctx context.Context) {
	if chosen() {
		return
	}

	debug.SetGCPercent(startCollection)
	debug.SetMemoryLimit(serverMemory)
	go func() {
		tick := time.NewTicker(memoryCheck)
		defer tick.Stop()

		started := time.After(startTime)
		for {
			select {
			case <-ctx.Done():
				return
			case <-started:
				debug.SetGCPercent(serverCollection)
				debug.FreeOSMemory()
			case <-tick.C:
				debug.SetMemoryLimit(max(serverMemory, inUse()*5/4))
			}
		}
	}()
}

// inUse returns how many bytes the live objects and the stacks take.
func inUse() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

// chosen reports whether the user told the collector what to do.
func chosen() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }
