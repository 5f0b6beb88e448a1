package main

import (
	"slices"
	"syscall"
	"time"
)

// spent is the time that something took, and the processor time of this process and its children.
type spent struct{ elapsed, processor time.Duration }

func (s spent) wall() float64 { return float64(s.elapsed.Microseconds()) / 1000 }

func (s spent) cpu() float64 { return float64(s.processor.Microseconds()) / 1000 }

func timed(f func() error) (spent, error) {
	began, used := time.Now(), processorTime()
	err := f()
	return spent{time.Since(began), processorTime() - used}, err
}

func processorTime() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return total
}

func median(all []spent, of func(spent) float64) float64 {
	var values []float64
	for _, one := range all {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// ratio returns the median of the ratios of each round.
func ratio(ours, theirs []spent, of func(spent) float64) float64 {
	var values []float64
	for i := range ours {
		values = append(values, of(ours[i])/of(theirs[i]))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
