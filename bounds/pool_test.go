package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// greedy takes one at a time for a sender until the pool refuses, and returns how many it got.
func greedy(p *Pool, sender string) (n int64) {
	for p.Take(sender, 1) {
		n++
	}
	return n
}

func TestPoolLeavesRoomForOthers(t *testing.T) {
	for _, senders := range []int{1, 4, 40, 100} {
		p := newPool(about{}, 10_000, shares{part: 0.5, least: 1})
		for i := range senders {
			greedy(p, fmt.Sprintf("192.0.2.%d", i))
		}
		free := 10_000 - p.Held()
		if want := int64(2 * 10_000 / (senders + 2)); free < want/2 {
			t.Errorf("%d greedy senders leave %d; want about %d", senders, free, want)
		}
		if got := greedy(p, "198.51.100.1"); got < 1 || got < free*free/40_000 {
			t.Errorf("after %d greedy senders, another one gets %d of %d", senders, got, free)
		}
	}
}

func TestPoolBoundsANetwork(t *testing.T) {
	p := newPool(about{}, 10_000, shares{part: 0.5, least: 1})
	for i := range 2000 {
		greedy(p, fmt.Sprintf("2001:db8:1:%x::/64", i))
	}
	if held := p.Held(); held > 5000 {
		t.Errorf("one /48 holds %d of 10,000", held)
	}
	if got := greedy(p, "2001:db8:2:1::/64"); got < 1000 {
		t.Errorf("another network gets %d", got)
	}
}

func TestPoolBoundsOneSender(t *testing.T) {
	p := newPool(about{}, 10_000, shares{part: 0.25, least: 1, most: 256})
	if got := greedy(p, "192.0.2.1"); got != 256 {
		t.Errorf("a sender gets %d", got)
	}
	if got := greedy(p, ""); got != 10_000-256 {
		t.Errorf("those without a share get %d", got)
	}
}

func TestPoolGivesBack(t *testing.T) {
	p := newPool(about{}, 1000, shares{part: 0.5, least: 1})
	for range 200 {
		var held []Hold
		for range rand.IntN(20) {
			h := p.Hold([]string{"", "192.0.2.1", "2001:db8:1:2::/64", "2001:db8:1:3::/64"}[rand.IntN(4)])
			for range rand.IntN(4) {
				h.Grow(rand.Int64N(100))
			}
			held = append(held, h)
		}
		for i := range held {
			held[i].Release()
			held[i].Release()
		}
	}
	p.Take("192.0.2.9", 3)
	p.Disown("192.0.2.9", 3)
	p.Give("", 3)
	if p.Held() != 0 || len(p.of) != 0 {
		t.Errorf("held %d by %v", p.Held(), p.of)
	}
}

func TestReadBodyHoldsWhatArrives(t *testing.T) {
	const most = 256 << 10
	for _, arrived := range []int{0, 1, 5000, 60_000, 200_000} {
		p := newPool(about{}, 64<<20, shares{part: 0.5})
		h := p.Hold("192.0.2.1")
		broken := io.MultiReader(strings.NewReader(strings.Repeat("x", arrived)), iotest.ErrReader(io.ErrUnexpectedEOF))
		body, err := h.ReadBody(broken, most, most)
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != arrived {
			t.Errorf("%d arrived: read %d, %v", arrived, len(body), err)
		}
		if held := p.Held(); held > int64(firstRead+readGrowth*arrived) {
			t.Errorf("%d of an announced %d arrived: holds %d", arrived, most, held)
		}
	}
}

func TestReadBody(t *testing.T) {
	const most = 100_000
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 40_000, most - 1, most, most + 1, 3 * most} {
		text := bytes.Repeat([]byte("y"), size)
		for name, length := range map[string]int64{"known": int64(size), "unknown": -1} {
			h := newPool(about{}, 1<<20, shares{part: 0.5}).Hold("192.0.2.1")
			body, err := h.ReadBody(iotest.OneByteReader(bytes.NewReader(text)), length, most)
			switch {
			case size > most && !errors.Is(err, ErrTooLarge), size > most && len(body) > most+1:
				t.Errorf("%d bytes of %s length: read %d, %v", size, name, len(body), err)
			case size <= most && (err != nil || !bytes.Equal(body, text)):
				t.Errorf("%d bytes of %s length: read %d, %v", size, name, len(body), err)
			}
		}
	}
	small := newPool(about{}, 10_000, shares{part: 0.5, least: 1})
	h := small.Hold("192.0.2.1")
	if _, err := h.ReadBody(bytes.NewReader(make([]byte, 9000)), 9000, most); !errors.Is(err, ErrNoRoom) {
		t.Errorf("beyond the share: %v", err)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `"a,[{\"b"`: 1, `[1,2,3]`: 4, `{"a":1,"b,c":[{}]}`: 5, `"open`: 1, `"\`: 1, ``: 1,
	} {
		if got := Values([]byte(text)); got != want {
			t.Errorf("%s: %d values, want %d", text, got, want)
		}
	}
	if got := Values(bytes.Repeat([]byte(`{"":0},`), 1000)); got < 2000 {
		t.Errorf("%d values", got)
	}
}

func TestRate(t *testing.T) {
	r := newRate(about{}, 3, 4096)
	now := time.Now()
	for i := range 3 {
		if wait := r.Charge("192.0.2.1", now); wait != 0 {
			t.Fatalf("after %d: wait %v", i, wait)
		}
	}
	if wait := r.Spent("192.0.2.1", now.Add(20*time.Second)); wait != 40*time.Second {
		t.Errorf("spent: wait %v", wait)
	}
	if wait := r.Spent("192.0.2.1", now.Add(time.Minute)); wait != 0 {
		t.Errorf("a minute later: wait %v", wait)
	}
	for i := range 100_000 { // one network fills no table
		r.Charge(fmt.Sprintf("2001:db8:1:%x::/64", i%65536), now)
	}
	if n := len(r.entries); n > 3*networkTimes+2 {
		t.Errorf("%d senders are remembered", n)
	}
	for _, other := range []string{"2001:db8:2:1::/64", "192.0.2.2"} {
		if wait := r.Spent(other, now); wait != 0 {
			t.Errorf("%s waits %v", other, wait)
		}
	}
}

func TestSlots(t *testing.T) {
	s := newSlots(about{}, 1, 3, 2, time.Minute)
	leave, ok := s.Enter(t.Context(), "192.0.2.1")
	if !ok {
		t.Fatal("no slot")
	}
	waiting := make(chan func())
	go func() {
		next, _ := s.Enter(t.Context(), "192.0.2.1")
		waiting <- next
	}()
	for s.Held() != 2 {
		time.Sleep(time.Millisecond)
	}
	if _, ok := s.Enter(t.Context(), "192.0.2.1"); ok {
		t.Error("a sender has a third place")
	}
	leave()
	next := <-waiting
	impatient := newSlots(about{}, 0, 3, 2, time.Millisecond)
	if _, ok := impatient.Enter(t.Context(), "192.0.2.1"); ok || impatient.Held() != 0 {
		t.Error("a turn that never comes")
	}
	next()
	if s.Held() != 0 {
		t.Errorf("%d places are held", s.Held())
	}
}
