package dashboard

import "millwright/state"

type factoryView struct {
	Current    state.Current
	Stale      []state.Webhook // that wait for the next apply to use a newer secret
	Attempts   []state.Attempt
	Deliveries chart
	Codes      []string // of the problems
	Use        useView
	Pulls      []pullRow
}

func (q *request) factory() error {
	p, f, err := q.factoryPage("", "overview")
	if err != nil {
		return err
	}

	v := factoryView{}
	if v.Current, err = q.Store.Current(q.Context(), f.UID); err != nil {
		return err
	}

	for _, w := range v.Current.Webhooks {
		if w.SecretStale {
			v.Stale = append(v.Stale, w)
		}
	}

	for _, found := range f.Problems {
		v.Codes = append(v.Codes, found.Code)
	}

	if v.Attempts, err = q.Store.Attempts(q.Context(), f.UID, 0, 5); err != nil {
		return err
	}

	if v.Use, err = q.use(f.UID, ""); err != nil {
		return err
	}

	if v.Pulls, err = q.pulls(f.UID); err != nil {
		return err
	}

	v.Deliveries = q.deliveryChart(f.UID)
	p.Title, p.Crumbs = f.Name, p.Crumbs[:1]
	p.Live, p.Data = []string{"sync." + f.UID, "secret", "check." + f.UID}, v
	return q.render("factory", p)
}
