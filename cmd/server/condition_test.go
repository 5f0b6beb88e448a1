package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/state/statetest"
)

// TestCondition shows skipped rows to the operator: a bounded number by name, all of them in figures.
func TestCondition(t *testing.T) {
	statetest.EachDSN(t, func(t *testing.T, dsn string) {
		s := statetest.Open(t, dsn)
		c := newCondition(s)
		if n := c.Notices(); len(n) != 0 {
			t.Errorf("notices of a good state: %v", n)
		}
		for i := range 9 {
			s.Skip("schedules", "fac_1", fmt.Sprint("row ", i), errors.New("cannot be read"))
		}
		n := c.Notices()
		if len(n) != maxNoticed+1 || !strings.Contains(n[0].Message, "schedules skips row 0: cannot be read") || !strings.Contains(n[maxNoticed].Message, "4 more") {
			t.Errorf("notices %v", n)
		}

		registry := prometheus.NewRegistry()
		registry.MustRegister(c)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		if _, skew := got["millwright_clock_skew_seconds"]; got["millwright_rows_skipped"] != 9 || skew != s.Shared() {
			t.Errorf("metrics %v", got)
		}
	})
}
