package dashboard

import (
	"io"

	"millwright/api"
	"millwright/state"
)

// leftovers splits what a run left into changes of repositories, files and links.
func (v *runView) leftovers(all []state.Artifact) {
	sets := map[string]int{}
	for i := range all {
		a := &all[i]
		if a.Kind == state.KindLink {
			v.Links = append(v.Links, *a)
			continue
		}

		v.Files = append(v.Files, *a)
		if a.Kind != state.KindPatch && a.Kind != state.KindBundle {
			continue
		}
		at, known := sets[a.Repository]
		if !known && len(v.Changes) == maxChangeSets {
			continue
		}
		if !known {
			at = len(v.Changes)
			sets[a.Repository] = at
			v.Changes = append(v.Changes, changeSet{Repository: a.Repository})
		}
		if a.Kind == state.KindPatch {
			v.Changes[at].Patch = a
		} else {
			v.Changes[at].Bundle = a
		}
	}
}

// readArtifacts reads what the run left, and the beginnings of its patches.
func (q *request) readArtifacts(v *runView) error {
	all, err := q.Store.Artifacts(q.Context(), v.Run.ID)
	if err != nil {
		return err
	}
	v.leftovers(all[v.Run.ID])
	if q.Looked != nil {
		q.Looked(all[v.Run.ID])
	}

	left := maxDiffLines
	for i := range v.Changes {
		c := &v.Changes[i]
		if c.Patch == nil {
			continue
		}

		text, err := io.ReadAll(io.LimitReader(q.Store.ArtifactContent(q.Context(), *c.Patch), maxPatch))
		if api.IsNotFound(err) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		c.read(text, &left)
	}
	return nil
}
