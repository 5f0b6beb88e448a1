package provider

import "strings"

// Origin is who caused a delivery, and what it is about, so that deliveries of what this server did can be
// told from those of others. This is taken from the payload: nothing of it is proven.
type Origin struct {
	Sender string // the login of the account that acted
	Target Target
	// Object is what was made or changed: comment, review, pull_request, issue, push, branch or status; "" for
	// all else.
	Object string
	// Action is what happened to the object, in the forge's word; synchronized for new commits of a merge
	// request of GitLab.
	Action string
	// Labels: labels of the object were added or removed. Label is the one, if the payload names it.
	Labels bool
	Label  string
	// ObjectID is the forge's ID of the object, and URL its address for people. Of a push they are empty. The
	// URL of a status is the page with its details.
	ObjectID, URL string
	Context       string // of a status
	// Text is the body of the object, where a marker may be.
	Text string
}

// Origin returns the origin of a delivery. ok is false for senders other than forges, and for a delivery
// without a sender.
func (d *Delivery) Origin() (o Origin, ok bool) {
	if d == nil {
		return o, false
	}

	b := &d.body
	o.Target = d.Target()
	switch d.table.provider {
	case GitHub:
		o.Sender = b.string("sender.login")
		o.github(b)
	case GitLab:
		o.Sender = b.string("user.username")
		if o.Sender == "" {
			o.Sender = b.string("user_username")
		}

		o.gitlab(b)
	}

	return o, o.Sender != ""
}

func (o *Origin) github(b *body) {
	created := b.string("master_branch") != "" || b.string("sha") != ""
	switch {
	case isPush(b):
		o.Object = "push"
		return
	case b.string("ref_type") == "branch" && created:
		o.Object, o.Target.Branch = "branch", strings.TrimPrefix(b.string("ref"), heads)
		return
	case b.string("context") != "" && b.string("sha") != "":
		o.Object, o.Context, o.URL = "status", b.string("context"), b.string("target_url")
		return
	}

	object := writing(b)
	if !b.has(object) {
		return
	}

	o.Action = b.string("action")
	switch o.Action {
	case "labeled", "unlabeled", "label_updated", "label_cleared":
		o.Labels, o.Label = true, b.string("label.name")
	}

	o.Object, o.ObjectID = object, scalar(b.at(object+".id"))
	o.URL, o.Text = b.string(object+".html_url"), b.string(object+".body")
	if o.Text == "" {
		o.Text = b.string(object + ".content")
	}
}

func (o *Origin) gitlab(b *body) {
	kinds := map[string]string{"note": "comment", "merge_request": "pull_request", "issue": "issue", "push": "push"}
	o.Object = kinds[b.string("object_kind")]
	if o.Object == "" || o.Object == "push" {
		return
	}

	o.Action = b.string("object_attributes.action")
	switch {
	case b.string("object_attributes.oldrev") != "":
		o.Action = "synchronized"
	case o.Action == "update" && b.has("changes.labels"):
		o.Labels = true
	}

	o.ObjectID, o.URL = scalar(b.at("object_attributes.id")), b.string("object_attributes.url")
	o.Text = b.string("object_attributes.note")
	if o.Text == "" {
		o.Text = b.string("object_attributes.description")
	}
}
