package dashboard

import (
	"context"
	"time"

	"millwright/state"
)

// Counting a large log takes longer than a page may take. A page waits briefly for its figures. A longer
// count ends in the background, and the page shows the previous figures, a few seconds old, or none yet. The
// figures of a small log are exact.
const (
	figurePatience = 20 * time.Millisecond // how long a page waits, for all its figures together
	figureGrace    = 4 * time.Millisecond  // how long it waits for one more when that time is over
	figureRest     = 20                    // a count that took t is not repeated for t times this
	figureTime     = 10 * time.Second      // after which a count is given up
	maxFigures     = 256
	maxCounting    = 8 // at a time
)

// counted returns what count returned lately under this name, and when. It is nil when nothing has been
// counted yet. asked is when the page was asked for; zero: it will ask again, and only begins the count.
func counted[T any](
	f *figures,
	asked time.Time,
	log func(error),
	name string,
	count func(context.Context) (T, error),
) (value *T, at time.Time) {
	f.mu.Lock()
	if f.all == nil || len(f.all) >= maxFigures {
		f.all = map[string]*figure{}
	}

	g := f.all[name]
	if g == nil {
		g = &figure{}
		f.all[name] = g
	}

	rested := time.Since(g.at) >= g.cost*figureRest || g.cost < figurePatience
	fresh := !asked.IsZero() && g.at.After(asked)
	if g.running == nil && rested && !fresh && f.counting < maxCounting {
		f.counting++
		g.running = make(chan struct{})
		go func() {
			ctx, stop := context.WithTimeout(context.Background(), figureTime)
			defer stop()

			began := time.Now()
			v, err := count(ctx)
			f.mu.Lock()
			defer f.mu.Unlock()

			if g.cost = time.Since(began); err == nil {
				g.value, g.at = &v, began
			} else {
				log(err)
			}

			close(g.running)
			g.running = nil
			f.counting--
		}()
	}

	running := g.running
	if g.value != nil && g.cost > figurePatience || asked.IsZero() {
		running = nil // it would be waited for in vain
	}

	f.mu.Unlock()
	if running != nil {
		patience := time.NewTimer(max(figureGrace, time.Until(asked.Add(figurePatience))))
		defer patience.Stop()

		select {
		case <-running:
		case <-patience.C:
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	value, _ = g.value.(*T)
	return value, g.at
}

// expectFigures begins the counts of the start page, which then go on while the rest of it is read.
func (q *request) expectFigures() {
	later := *q
	later.began = time.Time{}
	chosen, _ := q.timespan()
	for _, span := range []timespan{lastDay(), chosen} {
		later.deliveryTallies("", span)
		later.runTallies(span)
	}
	later.queue()
}

func (d *dashboard) countFailed(err error) { d.Log.Warn("dashboard figures", "error", err) }

// deliveryTallies counts the deliveries of a factory, or of all, over a span.
func (q *request) deliveryTallies(
	factoryUID string,
	span timespan,
) (tallies []state.DeliveryTally, known bool) {
	v, _ := counted(
		&q.figures,
		q.began,
		q.countFailed,
		"deliveries "+span.key()+" "+factoryUID,
		func(ctx context.Context) ([]state.DeliveryTally, error) {
			now := time.Now()
			return q.Store.DeliveryTallies(ctx, factoryUID, span.start(now), span.until(now), span.Step)
		},
	)
	if v == nil {
		return nil, false
	}

	return *v, true
}

// runTallies counts the runs over a span.
func (q *request) runTallies(span timespan) (tallies []state.RunTally, known bool) {
	count := func(ctx context.Context) ([]state.RunTally, error) {
		now := time.Now()
		return q.Store.RunTallies(ctx, span.start(now), span.until(now), span.Step)
	}

	v, _ := counted(&q.figures, q.began, q.countFailed, "runs "+span.key(), count)
	if v == nil {
		return nil, false
	}
	return *v, true
}

// deliveryChart draws the deliveries of a factory, or of all, over the span that the page asks for.
func (q *request) deliveryChart(factoryUID string) chart {
	span, _ := q.timespan()
	tallies, known := q.deliveryTallies(factoryUID, span)
	c := deliveryChart(time.Now(), span, tallies, known)

	path := "/deliveries"
	if factoryUID != "" {
		path = "/factories/" + factoryUID + "/deliveries"
	}
	c.list = func(of string, from, to time.Time) string {
		return deliveryQuery{
			Outcome: of,
			From:    from.UTC().Format(inputTime),
			To:      to.UTC().Format(inputTime),
		}.address(path, "")
	}
	q.spanOf(&c)
	return c
}

// deliveryCounts counts what the logs of a factory's webhooks hold, by webhook.
func (q *request) deliveryCounts(factoryUID string) (counts map[string]map[state.DeliveryOutcome]int64, known bool) {
	v, _ := counted(
		&q.figures,
		q.began,
		q.countFailed,
		"logs "+factoryUID,
		func(ctx context.Context) (map[string]map[state.DeliveryOutcome]int64, error) {
			return q.Store.DeliveryCounts(ctx, factoryUID)
		},
	)
	if v == nil {
		return nil, false
	}

	return *v, true
}

// queue counts the runs that wait for a worker, and those that workers have.
func (q *request) queue() (stats state.QueueStats) {
	if v, _ := counted(&q.figures, q.began, q.countFailed, "queue", q.Store.Queue); v != nil {
		return *v
	}
	return stats
}
