package cli

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"

	"millwright/reconcile"
)

var commitForm = regexp.MustCompile(`^[0-9a-f]{4,40}$`)

// revisionAt says whether a factory serves the revision that is looked for, or one that contains it.
func (l *lookout) revisionAt(ctx context.Context, f FactoryItem) (verdict, error) {
	applied, name := f.Sync.AppliedRevision, clean(f.Name)
	switch f.Source.Kind {
	case "managed":
		return l.managedAt(f)
	case "dir":
		if !strings.HasPrefix(l.revision, "sha256:") {
			return verdict{}, Usagef(
				"factory %s reads a directory, whose revisions are like sha256:…, not %q: leave --revision out",
				name, clean(l.revision),
			)
		}
		if strings.HasPrefix(applied, l.revision) {
			return verdict{settled: true, good: true}, nil
		}
		if f.Sync.State == "refused" && strings.HasPrefix(f.Sync.AttemptedRevision, l.revision) {
			return never("%s was refused", clean(l.revision)), nil
		}

		return l.waiting(f), nil
	}

	if err := l.openCheckout(ctx); err != nil {
		return verdict{}, err
	}

	var list struct{ Syncs []attempt }
	if err := l.Get(ctx, "/factory/"+f.UID+"/syncs?limit=100", &list); err != nil {
		return verdict{}, err
	}

	l.attempts = list.Syncs
	wanted := ShortRevision(l.revision)
	if l.contains(ctx, applied) {
		v := verdict{settled: true, good: true}
		if !l.same(applied) {
			v.why = name + " serves " + ShortRevision(applied) + ", which contains " + wanted
		}

		return v, nil
	}

	tried := f.Sync.AttemptedRevision
	if f.Sync.State == "refused" && l.contains(ctx, tried) {
		if !l.same(tried) {
			wanted = ShortRevision(tried) + ", which contains " + wanted + ","
		}

		return never("%s was refused: %s", wanted, clean(f.Sync.Message)), nil
	}

	return l.attempted(f), nil
}

// attempted returns what the factory's history has of the revision, or else why it is not applied yet.
func (l *lookout) attempted(f FactoryItem) verdict {
	serves := clean(ShortRevision(f.Sync.AppliedRevision))
	for _, a := range l.attempts {
		if !l.same(a.Revision) {
			continue
		}

		switch a.Outcome {
		case "applied", "unchanged":
			return verdict{true, true, ShortRevision(l.revision) + " was applied; " + serves + " came after it"}
		case "refused":
			return never(
				"%s was refused: %s; whether %s, which serves, contains it is not known here",
				ShortRevision(l.revision), clean(a.Message), serves,
			)
		}
	}

	return l.waiting(f)
}

// waiting describes what the command waits for.
func (l *lookout) waiting(f FactoryItem) verdict {
	name := clean(f.Name)
	switch {
	case f.Suspended:
		return never("%s is suspended, by its settings or a rollback: it applies nothing until it is resumed", name)
	case f.Sync.State == "failed":
		return notYet("%s cannot read its source: %s", name, clean(f.Sync.Message))
	case f.Sync.AppliedRevision == "":
		return notYet("%s has applied nothing yet", name)
	}
	return notYet("%s serves %s", name, clean(ShortRevision(f.Sync.AppliedRevision)))
}

// managedAt is revisionAt for a managed definition, whose revisions are numbered.
func (l *lookout) managedAt(f FactoryItem) (verdict, error) {
	number := func(id string) (int, bool) {
		text, r := strings.CutPrefix(id, "r")
		n, err := strconv.Atoi(text)
		return n, r && err == nil
	}

	wanted, ok := number(l.revision)
	if !ok {
		return verdict{}, Usagef(
			"the server holds the definition of factory %s, whose revisions are like r12, not %q",
			clean(f.Name), clean(l.revision),
		)
	}
	if applied, _ := number(f.Sync.AppliedRevision); applied >= wanted {
		return verdict{settled: true, good: true}, nil
	}

	return l.waiting(f), nil
}

// openCheckout looks the revision up in the repository of the working directory, once.
func (l *lookout) openCheckout(ctx context.Context) error {
	if l.history.asked != nil {
		return nil
	}

	dir, err := os.Getwd()
	if err != nil {
		return err
	}

	l.history.asked = map[string]bool{}
	l.history.Checkout = reconcile.OpenCheckout(dir)
	l.history.resolved = l.history.Resolve(ctx, l.revision)
	if l.history.resolved != "" {
		l.revision = l.history.resolved
	}
	if !commitForm.MatchString(l.revision) {
		return Usagef("--revision %q: want a commit, of 4 hexadecimal digits or more", clean(l.revision))
	}

	return nil
}

// same reports whether id is the revision that is looked for.
func (l *lookout) same(id string) bool { return id != "" && strings.HasPrefix(id, l.revision) }

// contains reports whether a commit is the revision that is looked for, or has it in its history.
func (l *lookout) contains(ctx context.Context, commit string) bool {
	if l.same(commit) {
		return true
	}
	if commit == "" || l.history.resolved == "" {
		return false
	}

	found, asked := l.history.asked[commit]
	if !asked {
		found = !l.older(ctx, commit) && l.history.Contains(ctx, commit, l.history.resolved)
		l.history.asked[commit] = found
	}

	return found
}

// older reports whether a commit that this repository lacks was made before the one that is looked for: then
// it is not worth fetching.
func (l *lookout) older(ctx context.Context, commit string) bool {
	if l.history.Resolve(ctx, commit) != "" {
		return false
	}

	made, known := l.history.Made(ctx, l.history.resolved)
	for _, a := range l.attempts {
		if a.Revision == commit && a.CommittedAt != nil {
			return known && a.CommittedAt.Before(made)
		}
	}

	return false
}
