// Package confinetest ends threads under the tests of packages that start processes.
package confinetest

import (
	"runtime"
	"sync"
)

// EndThreads ends all threads that no goroutine holds. The kernel then kills the processes that they started,
// where these die with their parent.
func EndThreads() {
	const threads = 50

	var locked, ended sync.WaitGroup
	locked.Add(threads)
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread() // the thread ends with this goroutine
			locked.Done()
			locked.Wait()
		})
	}

	ended.Wait()
}
