package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"millwright/schema/agefile"
)

// MaxSealedSecrets bounds the files of secrets/.
const MaxSealedSecrets = 100

// SealedSecrets returns the sealed secrets of the tree by name, also of a tree with errors, without files that have
// an error.
func (r *Result) SealedSecrets() []SealedSecret {
	if r.tree == nil {
		return nil
	}
	return r.tree.Sealed
}

// sealed reads secrets/: one file of age for each secret. Other files there are not ours.
func (t *tree) sealed(dir string) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		return e.Name()[0] != '.' && (e.IsDir() || isAge(e.Name()))
	})
	if err != nil {
		return err
	}

	for _, e := range list {
		p := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			err = t.misplacedSecrets(p)
		case path.Ext(p) != ".age":
			err = t.misplaced(p, dir+"/"+stem(e.Name())+".age")
		default:
			err = t.take(e, entry{path: p, kind: kindSecret, name: stem(e.Name())})
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// sealedSecret checks the form of a file of secrets/. Problems quote nothing of it.
func (d *document) sealedSecret(name string) any {
	if !agefile.ValidName(name) {
		d.report(
			fileSpan(),
			ruleSecretName,
			fmt.Sprintf("%s is no name of a secret", quoted(name)),
			"a name has letters, digits and _, the first no digit",
		)
		return nil
	}

	var wrong *agefile.Error
	if err := agefile.Check(d.src); errors.As(err, &wrong) {
		d.report(fileSpan(), ruleSealedForm, wrong.Text, wrong.Hint)
		return nil
	}

	digest := sha256.Sum256(d.src)
	return SealedSecret{Name: name, Path: d.path, File: d.src, Digest: hex.EncodeToString(digest[:])}
}

// sealedLimit reports the first file of secrets/ that is one too many.
func (c *crossed) sealedLimit() {
	names := c.factory.sealedNames
	if len(names) <= MaxSealedSecrets {
		return
	}

	c.report(
		"secrets/"+names[MaxSealedSecrets]+".age",
		fileSpan(),
		ruleSealedForm,
		fmt.Sprintf("this is the first of %d files, in name order, that is over the limit of %d",
			len(names), MaxSealedSecrets),
		fmt.Sprintf("delete %d", len(names)-MaxSealedSecrets),
	)
}

// sealedSecrets reports the sealed secrets whose name is taken, and those that cannot be opened.
func (c *stateCheck) sealedSecrets() {
	report := func(s SealedSecret, rule RuleID, message, hint string) {
		c.report(&fact{path: s.Path, line: 1, col: 1, endLine: 1, endCol: 1}, rule, message, hint)
	}

	for _, s := range c.factory.Sealed {
		opened := c.known.Sealed[s.Name]
		if opened.Gone {
			continue
		}

		use, used := c.known.Used[s.Name]
		_, team := c.known.Secrets[s.Name]
		switch {
		case used:
			message := fmt.Sprintf("the name %s belongs to %s", quoted(s.Name), use)
			report(s, ruleSealedTaken, message, "choose another name")
		case team && !c.known.Own[s.Name]:
			report(
				s,
				ruleSealedTaken,
				fmt.Sprintf("there is a team secret %s already", quoted(s.Name)),
				"choose another name, or delete the team secret first",
			)
		}

		if opened.Problem != "" {
			report(s, ruleSealedOpen, opened.Problem, opened.Hint)
		}
	}
}

// secretFact returns what is known of a secret that the tree may name: one of its own, or else one of the team.
func (c *stateCheck) secretFact(name string) (s SecretFact, ok bool) {
	_, own := slices.BinarySearch(c.factory.sealedNames, name)
	if opened := c.known.Sealed[name]; own && !opened.Gone {
		return opened.SecretFact, true
	}

	s, ok = c.known.Secrets[name]
	return s, ok
}
