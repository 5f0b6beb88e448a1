//go:build !linux

package cli

// clockSynchronised reports whether the kernel knows that the clock is synchronised.
func clockSynchronised() (synchronised, known bool) { return false, false }
