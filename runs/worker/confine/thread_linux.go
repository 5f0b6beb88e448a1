package confine

import (
	"os"
	"runtime"
	"sync"
	"syscall"
)

// onOwnThread calls f in a goroutine whose thread runs nothing else meanwhile, and ends with f. It is never
// the first thread, which the process shows as itself.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if syscall.Gettid() != os.Getpid() {
			f()
			return
		}

		var other sync.WaitGroup
		other.Add(1)
		onOwnThread(func() {
			defer other.Done()
			f()
		})
		other.Wait()
		runtime.UnlockOSThread()
	}()
}
