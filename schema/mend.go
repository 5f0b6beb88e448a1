package schema

import "slices"

// Mend makes the fixes of problems in the file at path whose text is src, and returns the new text and the
// problems that it mends. A fix whose result, checked anew, is worse than what was there is left out.
func Mend(path string, src []byte, problems []Problem) (text []byte, mended []Problem) {
	problems = slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Fix == nil })
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Fix.Start - b.Fix.Start })

	apart := problems[:0]
	for _, p := range problems {
		if len(apart) == 0 || p.Fix.Start >= apart[len(apart)-1].Fix.End { // the rest may still be there next time
			apart = append(apart, p)
		}
	}

	if out := applied(src, apart); better(path, src, out) {
		return out, apart
	}

	text = src
	for _, p := range apart {
		with := append(slices.Clone(mended), p)
		if out := applied(src, with); better(path, text, out) {
			text, mended = out, with
		}
	}

	return text, mended
}

func applied(src []byte, problems []Problem) []byte {
	fixes := make([]Fix, len(problems))
	for i, p := range problems {
		fixes[i] = *p.Fix
	}
	return ApplyFixes(src, fixes)
}

// better reports whether the text after, as the file at path, has no more problems than before, and none of
// syntax that before has not. A right key may bring a wrong value to light. Names of other files are not looked
// at.
func better(path string, before, after []byte) bool {
	old, now := problemsAlone(path, before), problemsAlone(path, after)
	if len(now) > len(old) {
		return false
	}

	syntax := []RuleID{ruleInvalidYAML, ruleDuplicateKey, ruleYAMLKey, ruleFrontMatter, ruleMoreProblems}
	for _, rule := range syntax {
		is := func(p Problem) bool { return p.Code == rule.Code() }
		if slices.ContainsFunc(now, is) && !slices.ContainsFunc(old, is) {
			return false
		}
	}

	return true
}

// problemsAlone returns the problems of a file in a tree that holds nothing else.
func problemsAlone(path string, text []byte) []Problem {
	fsys, err := FilesFS([]File{{Path: path, Content: string(text)}})
	if err != nil {
		return nil
	}

	beyond := []string{ruleReference.Code(), ruleForeman.Code(), ruleWebhookIDs.Code()}
	return slices.DeleteFunc(
		Load(fsys, nil).Problems,
		func(p Problem) bool { return slices.Contains(beyond, p.Code) },
	)
}
