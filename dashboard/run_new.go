package dashboard

import (
	"crypto/rand"
	"net/http"
	"strings"

	"millwright/runs"
	"millwright/state"
)

type newRunView struct {
	Form      form
	Receivers []receiver
	Any       bool // the key may start runs without an agent
}

// receiver is who may be given a task.
type receiver struct{ Value, Name string }

// The beginnings of a receiver's value.
const (
	toFactory = "factory:"
	toAgent   = "agent:"
)

// newRun shows the form that starts a run. The address may name its receiver.
func (q *request) newRun() error {
	return q.showNewRun(http.StatusOK, form{Values: map[string]string{
		"to":   clip(100, q.URL.Query().Get("to")),
		"once": rand.Text(),
	}})
}

func (q *request) showNewRun(status int, f form) error {
	receivers, err := q.receivers()
	if err != nil {
		return err
	}

	return q.renderStatus(status, "run-new", page{
		Title:   "New run",
		Section: "runs",
		Crumbs:  []crumb{{"Runs", "/runs"}},
		Data:    newRunView{Form: f, Receivers: receivers, Any: !q.key.Limited()},
	})
}

// receivers returns the factories that the key reaches, each with its agents.
func (q *request) receivers() (all []receiver, err error) {
	factories, err := q.ownFactories()
	if err != nil {
		return nil, err
	}

	var list runs.ListAgentIdentitiesResponse
	if err := q.call(http.MethodGet, "/agent/identities", nil, &list); err != nil {
		return nil, err
	}

	for _, f := range factories {
		if f.Detached {
			continue
		}

		all = append(all, receiver{toFactory + f.UID, line(f.Name)})
		for _, a := range list.Agents {
			if a.FactoryUID == f.UID {
				all = append(all, receiver{toAgent + a.UID, line(f.Name + " / " + a.Name)})
			}
		}
	}

	return all, nil
}

// startRun starts a run. The same form sent twice starts one.
func (q *request) startRun() error {
	typed := q.formOf("to", "prompt", "title", "model_id", "once")
	prompt := unixLines(typed.Values["prompt"])
	typed.Values["prompt"] = prompt
	if strings.TrimSpace(prompt) == "" {
		typed.Errors["prompt"] = "is empty: write what the agent is to do"
		return q.showNewRun(http.StatusUnprocessableEntity, typed)
	}

	in := map[string]any{"prompt": prompt}
	if title := strings.TrimSpace(typed.Values["title"]); title != "" {
		in["title"] = title
	}
	if model := strings.TrimSpace(typed.Values["model_id"]); model != "" {
		in["config"] = map[string]string{"model_id": model}
	}

	path := "/agent/runs"
	if uid, ok := strings.CutPrefix(typed.Values["to"], toFactory); ok {
		if !state.ValidID(state.PrefixFactory, uid) {
			typed.Errors["to"] = "does not exist"
			return q.showNewRun(http.StatusUnprocessableEntity, typed)
		}
		path = "/factory/" + uid + "/runs"
	} else if uid := strings.TrimPrefix(typed.Values["to"], toAgent); uid != "" {
		in["agent_identity_uid"] = uid
	}

	var made runs.RunAgentResponse
	err := q.call(http.MethodPost, path, in, &made, "X-Millwright-Client", "web",
		"Idempotency-Key", clip(100, typed.Values["once"]))
	if err == nil {
		return q.redirect("/runs/"+made.RunID, "started")
	}

	typed.Values["agent_identity_uid"] = "" // so that its problem is shown beside the receiver
	if !typed.take(err) {
		return err
	}

	if wrong := typed.Errors["agent_identity_uid"]; wrong != "" {
		typed.Errors["to"] = wrong
	}
	typed.Values["once"] = rand.Text()
	return q.showNewRun(http.StatusUnprocessableEntity, typed)
}
