package runlist

import "context"

// Bounds of the work for one page, in runs.
const (
	maxFew        = 500  // sorted in memory
	firstLook     = 100  // looked at by the first statement of a walk; by each later one four times as many
	maxLooked     = 3000 // looked at in a walk
	maxTextLooked = 1000 // the same, where the filter reads their text
	maxLive       = 5000 // looked at in runs_live
)

// Page is a part of a list.
type Page struct {
	Runs []Position
	Next *Position // where the list continues; nil at its end
}

// stretch is a part of a list: behind one run, up to and with another one. Either may be nil.
type stretch struct{ after, until *Position }

// Find returns at most limit runs that the filter selects, after the position if there is one. A page may have
// fewer and the list go on: where no index lists the runs, Find looks at a bounded number of them.
func Find[S ~string](ctx context.Context, read Read, f Filter[S], o Order, after *Position, limit int) (Page, error) {
	root, err := rootOf(ctx, read, f.Ancestor)
	if err != nil {
		return Page{}, err
	}

	p, s := newPlan(f, o, root), stretch{after: after}
	mostLive, most := maxLive, maxLooked
	if p.row {
		mostLive = maxLooked
	}
	if p.text {
		mostLive, most = maxTextLooked, maxTextLooked
	}

	if p.sifts {
		live := plan{order: p.order, keys: p.keys, arms: []arm{{where{{sql: isLive}}, p.span}}}
		last, err := read.scan(ctx, p.order, live.last(s, mostLive))
		if err != nil {
			return Page{}, err
		}
		if len(last) > 0 {
			s.until = &last[0]
		}
	}

	if p.exact {
		return p.walk(ctx, read, s, limit, most)
	}

	crowd, err := read.text(ctx, more(condition{sql: "SELECT id FROM runs WHERE " + isLive}, mostLive))
	if err != nil {
		return Page{}, err
	}

	for _, c := range p.filters {
		// In a crowd, nobody knows how many live runs meet a condition that only indexed ones are found by.
		if c.ids == nil || crowd != "" && c.column != "" {
			continue
		}

		many, err := read.text(ctx, more(*c.ids, maxFew))
		if err != nil {
			return Page{}, err
		}
		if many == "" {
			found, err := read.scan(ctx, p.order, p.among(*c.ids, maxFew, stretch{after: after}, limit+1))
			return cut(found, limit, nil), err
		}
	}

	return p.walk(ctx, read, s, limit, most)
}

// walk looks at runs of the arms until it has enough that meet the filters, or has looked at most.
func (p *plan) walk(ctx context.Context, read Read, s stretch, limit, most int) (page Page, err error) {
	n := max(firstLook, limit+1)
	for looked := 0; ; {
		part, err := read.scan(ctx, p.order, p.matches(s, n, limit+1))
		if err != nil {
			return Page{}, err
		}

		page = cut(append(page.Runs, part...), limit, s.until)
		if p.exact || page.Next != s.until {
			return page, nil
		}

		last, err := read.scan(ctx, p.order, p.last(s, n))
		if err != nil || len(last) == 0 {
			return page, err
		}

		s.after = &last[0]
		if looked += n; looked >= most {
			page.Next = s.after
			return page, nil
		}

		n = min(4*n, most-looked)
	}
}

// cut makes a page of at most limit runs. The list continues after it if there are more, or from rest.
func cut(found []Position, limit int, rest *Position) Page {
	if len(found) <= limit {
		return Page{found, rest}
	}
	return Page{found[:limit], &found[limit-1]}
}

// rootOf returns the root of a run's tree; empty when the run is gone and was not itself the root of any left.
func rootOf(ctx context.Context, read Read, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	var st statement
	st.add(`SELECT root_run_id FROM runs WHERE id = ?
		UNION ALL
		SELECT root_run_id FROM runs WHERE root_run_id = ? AND parent_run_id <> '' LIMIT 1`, id, id)
	return read.text(ctx, &st)
}
