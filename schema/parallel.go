package schema

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls f for 0 to n-1 from as many goroutines as there are
// processors, at most 8, and returns when all calls have.
func parallel(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), 8, n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}

	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}

	group.Wait()
}
