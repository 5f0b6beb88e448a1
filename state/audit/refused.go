package audit

import (
	"context"
	"fmt"
	"time"

	"millwright/state/db"
)

const (
	// refusedEvery is the least time between two rows about refused keys of one server.
	refusedEvery = 10 * time.Minute
	// maxSenders bounds the senders that are told apart.
	maxSenders = 1000
)

// Refused counts a wrong key or a refused sign-in. The first one is a row at once; further ones share one row
// every ten minutes, so that strangers cannot fill the log.
func (l *Log) Refused(ctx context.Context, sender string) error {
	l.mu.Lock()
	if l.refused.senders == nil {
		l.refused.senders = map[string]bool{}
	}
	l.refused.count++
	if len(l.refused.senders) < maxSenders {
		l.refused.senders[sender] = true
	}
	l.mu.Unlock()

	return l.Flush(context.WithoutCancel(ctx), false)
}

// Flush writes the row about the keys refused so far, if there are any and one is due or all is set.
func (l *Log) Flush(ctx context.Context, all bool) error {
	now := time.Now()

	l.mu.Lock()
	was := l.refused
	due := was.count > 0 && (all || now.Sub(was.written) >= refusedEvery)
	if due {
		l.refused = refused{written: now}
	}
	l.mu.Unlock()

	if !due {
		return nil
	}

	e := Entry{
		Actor:  Actor{Kind: "unknown"},
		Action: SignInRefused,
		Detail: fmt.Sprintf("refused keys: %d, from addresses: %d", was.count, len(was.senders)),
	}
	if len(was.senders) == 1 {
		for sender := range was.senders {
			e.Actor.Source = sender
		}
	}

	err := l.Write(ctx, func(context.Context, *db.Tx) (Entries, error) {
		return One(e), nil
	})
	if err != nil { // the next row has them, too
		l.mu.Lock()
		l.refused.count += was.count
		l.mu.Unlock()
	}
	return err
}
