package schema

type stateCheck struct {
	nearby
	known    *Known
	factory  *Factory
	skipped  map[RuleID]bool
	problems []Problem
	counts   map[string]int // of problems, by path
	names    []string       // of the secrets, sorted
	uids     []string       // known ones, sorted
}

func (c *stateCheck) report(f *fact, rule RuleID, message, hint string) *Problem {
	p := newProblem(f.path, f.span(), rule, message, hint)
	if c.counts == nil {
		c.counts = map[string]int{}
	}

	if c.counts[f.path]++; c.counts[f.path] > maxProblems {
		if c.counts[f.path] == maxProblems+1 {
			c.problems = append(c.problems, newProblem(f.path, f.span(), ruleMoreProblems,
				"more problems like these in this file are not shown", "fix the first ones and check again"))
		}
		return &p
	}

	c.problems = append(c.problems, p)
	return &c.problems[len(c.problems)-1]
}
