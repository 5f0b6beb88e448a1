package plan

import (
	"errors"
	"slices"
	"strings"

	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state"
)

// ownSecret is a secret in the definition, as it is after the apply.
type ownSecret struct {
	file    schema.SealedSecret
	version int64
	opened  *state.OwnSecret // with the value, if the file is new or changed
}

// openSecrets compares the files of secrets/ with the applied ones, and returns their secrets by name. It decrypts
// those that are new or changed, if the options allow it. known gets what it saw.
func openSecrets(
	cur state.Current,
	files []schema.SealedSecret,
	opts Options,
	known *schema.Known,
) map[string]ownSecret {
	all := map[string]ownSecret{}
	known.Own = map[string]bool{}
	if opts.OpenSecrets || opts.KeepSecrets {
		known.Sealed = map[string]schema.SealedFact{}
	}

	for _, f := range files {
		was, applied := cur.Own[f.Name]
		own := ownSecret{file: f, version: was.Version}
		known.Own[f.Name] = applied
		switch {
		case opts.KeepSecrets && !applied:
			known.Sealed[f.Name] = schema.SealedFact{Gone: true}
			continue
		case opts.KeepSecrets || applied && was.Digest == f.Digest:
			if known.Sealed != nil {
				known.Sealed[f.Name] = schema.SealedFact{SecretFact: was.Fact()}
			}
		default:
			own.version++
			own.opened = &state.OwnSecret{Name: f.Name, Digest: f.Digest, Version: own.version}
			if opts.OpenSecrets {
				known.Sealed[f.Name] = own.open(cur)
			}
		}

		all[f.Name] = own
	}

	return all
}

// open decrypts the file.
func (o ownSecret) open(cur state.Current) schema.SealedFact {
	value, err := cur.Identity.Open(cur.Factory.UID, o.file.Name, o.file.File)
	if wrong, ok := errors.AsType[*agefile.Error](err); ok {
		return schema.SealedFact{Problem: wrong.Text, Hint: wrong.Hint}
	}

	o.opened.Value = value
	return schema.SealedFact{SecretFact: schema.FactOf(string(value))}
}

// compareSecrets adds the changes of the secrets in the definition. Values are not part of them.
func (p *Plan) compareSecrets(cur state.Current, own map[string]ownSecret, opts Options, app *state.ChangeSet) {
	var changes []Change
	for name, o := range own {
		c := Change{Kind: KindSecret, Name: name, Action: ActionUnchanged, Fields: []Field{}, Line: 1}
		c.File = o.file.Path
		if o.opened != nil {
			app.Own = append(app.Own, *o.opened)
			c.Action = ActionCreate
			if o.version > 1 {
				c.Action = ActionUpdate
			}
		}

		changes = append(changes, c)
	}

	for name := range cur.Own {
		if _, kept := own[name]; kept || opts.KeepSecrets {
			continue
		}

		app.DeleteOwn = append(app.DeleteOwn, name)
		changes = append(changes, Change{
			Kind: KindSecret, Name: name, Action: ActionDelete, Fields: []Field{},
			File: "secrets/" + name + ".age", Line: 1,
		})
	}

	slices.SortFunc(app.Own, func(a, b state.OwnSecret) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(app.DeleteOwn)
	p.add(changes)
}
