package api_test

import (
	"fmt"
	"testing"
	"time"

	"millwright/api"
)

func TestBudget(t *testing.T) {
	b := api.NewBudget(3)
	at := time.Unix(1_800_000_000, 0).Add(20 * time.Second)
	for i := range 3 {
		if wait := b.Spent("192.0.2.1", at); wait != 0 {
			t.Fatalf("after %d: wait %d", i, wait)
		}
		b.Charge("192.0.2.1", at)
	}
	if wait := b.Spent("192.0.2.1", at); wait != int(60-at.Unix()%60) {
		t.Errorf("spent: wait %d", wait)
	}
	if wait := b.Spent("192.0.2.1", at.Add(time.Minute)); wait != 0 {
		t.Errorf("a minute later: wait %d", wait)
	}
	free := 0
	for i := range 100 {
		if b.Spent(fmt.Sprint("sender ", i), at) == 0 {
			free++
		}
	}
	if free < 95 {
		t.Errorf("only %d of 100 other senders have budget left", free)
	}
	for i := range 100_000 { // the table does not grow
		b.Charge(fmt.Sprint("flood ", i), at)
	}
}
