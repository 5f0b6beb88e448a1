package reconcile

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"millwright/reconcile/signers"
	"millwright/schema"
)

// verify returns who signed a commit, or the result that refuses it. Without a list of signers it returns neither.
// An error means that the commit cannot be read from the clone.
func (g *gitSource) verify(o *objects, commit *object.Commit) (signer string, refusal *schema.Result, err error) {
	if g.cfg.Signers == nil {
		return "", nil, nil
	}

	obj, err := o.open(plumbing.CommitObject, commit.Hash)
	if err != nil {
		return "", nil, err
	}

	r, err := obj.Reader()
	if err != nil {
		return "", nil, err
	}
	defer r.Close()

	raw, err := io.ReadAll(io.LimitReader(r, signers.MaxCommit+1))
	if err != nil {
		return "", nil, err
	}

	by, why := g.cfg.Signers.Verify(raw)
	tree, _ := signers.Tree(raw)
	if why == nil && tree != commit.TreeHash.String() {
		why = fmt.Errorf("it names two trees") // the one that was read is not the one that was signed
	}
	if why == nil {
		return oneLine(by.String(), 300), nil, nil
	}

	return "", schema.Refuse(schema.FileProblem(
		".",
		schema.RuleCommitSignature,
		oneLine(fmt.Sprintf("commit %s is refused: %v", commit.Hash.String()[:12], why), 500),
		strings.Join([]string{
			"sign it with a key that verify of the source lists",
			"or add the key to that file and reload the settings",
		}, ", "),
	)), nil
}
