package state_test

import (
	"bytes"
	"context"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millwright/state"
	"millwright/state/statetest"
)

// BenchmarkAccept shows what a delivery of 2 KB with one run costs, also in processor time, which other
// load on the machine does not change.
func BenchmarkAccept(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": statetest.SQLite, "postgres": statetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			h := newHooks(b, statetest.Open(b, dsn(b)), "alerts")
			like := h.acceptance("alerts", "one", 1)
			body := append(append([]byte(`"`), bytes.Repeat([]byte("x"), 2046)...), '"')
			var n atomic.Int64
			b.SetParallelism(32)
			before := processorTime()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					a := like
					a.UID, a.Body = state.NewID(state.PrefixDelivery), body
					a.Identity = state.IdentityOf(state.IdentityServiceHeader, strconv.FormatInt(n.Add(1), 10))
					run := like.Runs[0]
					run.ID, run.DeliveryUID, run.Envelope = state.NewRunID(), a.UID, string(body[:800])
					run.RootRunID, run.ConversationID = run.ID, run.ID
					a.Runs = []state.NewRun{run}
					if _, err := h.s.Accept(context.Background(), a); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
