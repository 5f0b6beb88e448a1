package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// Load reads a definition tree, whose root is the root of fsys, and reports
// every problem in one pass. The same tree gives the same bytes on every run.
// The rules that need state run on what is known, and are named in
// Result.NotChecked otherwise.
//
// It never panics, follows no symbolic link that fsys reports as one, and
// bounds what it reads (MaxFiles, MaxFileBytes, MaxTreeBytes) before it spends
// memory. Files are read by as many goroutines as there are processors; none is
// left when it returns.
func Load(fsys fs.FS, known *Known) *Result { return LoadContext(context.Background(), fsys, known) }

// LoadContext is Load that can be given up: once ctx has ended it begins no
// other file, and Result.Err is the context's error. One file takes less than
// half a second, regardless of its content.
func LoadContext(ctx context.Context, fsys fs.FS, known *Known) *Result {
	return load(ctx, fsys, known, nil)
}

func load(ctx context.Context, fsys fs.FS, known *Known, m *memory) *Result {
	r := &Result{tree: &Factory{}, sources: map[string][]byte{}}

	// Compiling the schemas takes a while the first time: it goes on beside the walk.
	var compiling sync.WaitGroup
	for _, name := range []string{"automation", "webhook"} {
		compiling.Go(func() { _, _ = structures[name]() })
	}
	defer compiling.Wait()

	t, err := walk(fsys, m)
	switch {
	case errors.Is(err, errTooMany):
		r.base = []Problem{newProblem(
			".",
			fileSpan(),
			ruleTreeTooLarge,
			fmt.Sprintf(
				"the tree has more than %d files at or near resource paths",
				MaxFiles,
			),
			"split it over several factories",
		)}

		r.finish(known)
		return r
	case err != nil:
		r.Err = err
	}

	l := loader{ctx: ctx, fsys: fsys, memory: m, entries: t.entries, budget: diagnosisBudget}
	r.base, r.entries = t.problems, t.entries
	l.run(r)
	if err := ctx.Err(); err != nil {
		r = &Result{Err: err, tree: &Factory{}}
		r.finish(known)
		return r
	}

	if l.bytes.Load() > MaxTreeBytes {
		r = &Result{Err: r.Err, tree: &Factory{}} // which files were still read is chance
		r.base = []Problem{newProblem(
			".",
			fileSpan(),
			ruleTreeTooLarge,
			fmt.Sprintf(
				"the files at resource paths have more than %d MiB together",
				MaxTreeBytes>>20,
			),
			"split the tree over several factories",
		)}

		r.finish(known)
		return r
	}

	r.tree.sort()
	r.base = append(r.base, crossCheck(r.tree, l.entries)...)
	if r.unfolded() > MaxUnfoldedBytes {
		r.base = append(r.base, newProblem(
			".",
			fileSpan(),
			ruleTreeTooLarge,
			fmt.Sprintf(
				"the automations have more than %d MiB when each is counted with its agent and factory.yaml",
				MaxUnfoldedBytes>>20,
			),
			"move long prompts into skills, or split the tree over several factories",
		))
	}

	r.finish(known)
	return r
}

// unfolded counts the bytes of factory.yaml and the agent for each automation that is given them.
func (r *Result) unfolded() (total int) {
	agents := make(map[string]int, len(r.tree.Agents)+1)
	foreman, _ := r.tree.Foreman()
	for _, a := range r.tree.Agents {
		agents[a.Name] = len(r.sources[a.Path])
	}
	agents[""] = len(r.sources[foreman.Path])
	for _, a := range r.tree.Automations {
		total += len(r.sources["factory.yaml"]) + agents[a.Agent]
	}
	return total
}

type loader struct {
	ctx     context.Context
	fsys    fs.FS
	memory  *memory
	entries []entry
	budget  int // of the diagnosis
	bytes   atomic.Int64
	firsts  sync.Pool // of *[firstRead]byte
}

// In a tree that is full of problems, files beyond the first maxTreeProblems
// keep one each. What is kept depends on whole batches, so that it is the same
// on every run.
const (
	batch           = 512
	maxTreeProblems = 10_000
)

func (l *loader) run(r *Result) {
	automations, limit := 0, maxProblems
	for _, e := range l.entries {
		if e.kind == kindAutomation {
			automations++
		}
	}

	r.tree.Automations = make([]Automation, 0, automations)
	docs := make([]loaded, min(batch, len(l.entries)))
	for first := 0; first < len(l.entries); first += batch {
		part := l.entries[first:min(first+batch, len(l.entries))]
		clear(docs)
		parallel(len(part), func(i int) {
			if l.bytes.Load() <= MaxTreeBytes && l.ctx.Err() == nil {
				docs[i] = l.load(part[i], limit)
			}
		})
		for i := range part {
			l.collect(r, part[i], &docs[i])
		}

		if len(r.base) > maxTreeProblems {
			limit = 1
		}
	}
}

func (l *loader) load(e entry, limit int) (out loaded) {
	defer func() {
		if p := recover(); p != nil { // a bug here must not take a server down
			out = loaded{problems: []Problem{newProblem(e.path, fileSpan(), ruleInvalidYAML,
				clip(fmt.Sprintf("this file cannot be checked: %v", p)), "")}}
		}
	}()

	hit, ok, identity := l.memory.recall(e)
	if ok {
		l.bytes.Add(int64(len(hit.src)))
		return hit
	}

	src, err := l.read(e.path)
	switch {
	case errors.Is(err, errTooLarge):
		return loaded{problems: []Problem{newProblem(e.path, fileSpan(), ruleFileTooLarge,
			fmt.Sprintf("the file has more than %d KiB", MaxFileBytes>>10), "")}}
	case errors.As(err, new(Malformed)):
		return loaded{
			problems: []Problem{
				newProblem(e.path, fileSpan(), ruleUnreadable, "cannot be read: "+cause(err), ""),
			},
		}

	case err != nil:
		return loaded{
			err: err,
			problems: []Problem{
				newProblem(e.path, fileSpan(), ruleUnreadable, "cannot be read: "+cause(err), ""),
			},
		}
	}

	l.bytes.Add(int64(len(src)))
	d := &document{path: e.path, src: src, limit: limit}
	out.resource = d.resource(e)
	d.settle()
	out.src, out.problems, out.facts = src, d.problems, d.facts
	if d.parseErr != nil {
		out.doc = d
	}

	l.memory.keep(e, identity, out)
	return out
}

var errTooLarge = errors.New("file too large")

// firstRead is how much of a file is asked for first: most files are smaller, so that one read is enough.
const firstRead = 4096

// read reads a file up to the limit.
func (l *loader) read(p string) ([]byte, error) {
	f, err := l.fsys.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()

	first, _ := l.firsts.Get().(*[firstRead]byte)
	if first == nil {
		first = new([firstRead]byte)
	}
	defer l.firsts.Put(first)

	n, err := f.Read(first[:])
	buf := slices.Clone(first[:n])
	if err == nil && n < firstRead && n > 0 && ofSystem(f) {
		return buf, nil
	}

	for err == nil {
		if len(buf) > MaxFileBytes {
			return nil, errTooLarge
		}

		if len(buf) < len(first) { // at its end, most likely: the text may be kept, so no room is made in it
			n, err = f.Read(first[:])
			buf = append(buf, first[:n]...)
			continue
		}

		buf = slices.Grow(buf, firstRead)
		n, err = f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
	}

	switch {
	case !errors.Is(err, io.EOF):
		return nil, err
	case len(buf) > MaxFileBytes:
		return nil, errTooLarge
	}

	return buf, nil
}

// resource turns a file into its resource and reports its problems.
func (d *document) resource(e entry) any {
	if e.kind != kindSecret && !d.checkEncoding() {
		return nil
	}

	if bytes.HasPrefix(d.src, []byte("version https://git-lfs.github.com/spec/")) {
		d.report(
			fileSpan(),
			ruleInvalidYAML,
			"the file is a Git LFS pointer, not the content",
			"keep definition files out of LFS: see .gitattributes",
		)
		return nil
	}

	if e.kind == kindSecret {
		return d.sealedSecret(e.name)
	}

	switch e.kind {
	case kindAutomation, kindAgent, kindSkill:
		if !d.splitFrontMatter() {
			return nil
		}
	default:
		d.wholeText()
	}

	d.parse()
	if start, end, ok := d.sentenceKey(); ok {
		d.problems = nil // what else is wrong with the prompt as YAML
		d.openPrompt(start, end)
		return nil
	}

	d.checkBody(e.kind)
	if d.data == nil {
		return nil
	}
	defer d.checkControls(d.root, nil) // after the rules that certain values have of their own

	switch e.kind {
	case kindFactory:
		return d.factoryFile()
	case kindWebhook:
		return d.webhook(e.name)
	case kindAutomation:
		return d.automation(e.name)
	case kindAgent:
		return d.agent(e.name)
	case kindRunner:
		return d.runner(e.name)
	case kindEnvironment:
		return d.environment(e.name)
	case kindNotification:
		return d.notification(e.name)
	default:
		return d.skill(e.name, e.agent)
	}
}

// collect adds a loaded file to the result, in the order of the paths.
func (l *loader) collect(r *Result, e entry, doc *loaded) {
	if doc.err != nil && r.Err == nil {
		r.Err = fmt.Errorf("%s: %w", clip(e.path), doc.err)
	}
	if doc.doc != nil {
		l.budget = doc.doc.diagnose(l.budget)
		doc.problems = doc.doc.problems
	}
	if doc.src != nil {
		r.Files++
		r.sources[e.path] = doc.src
	}

	r.base = append(r.base, doc.problems...)
	f := r.tree
	f.facts = append(f.facts, doc.facts...)
	switch res := doc.resource.(type) {
	case *FactoryFile:
		f.File = res
	case Webhook:
		f.Webhooks = append(f.Webhooks, res)
	case Automation:
		f.Automations = append(f.Automations, res)
	case Agent:
		f.Agents = append(f.Agents, res)
	case Runner:
		f.Runners = append(f.Runners, res)
	case Environment:
		f.Environments = append(f.Environments, res)
	case Notification:
		f.Notifications = append(f.Notifications, res)
	case Skill:
		f.Skills = append(f.Skills, res)
	case SealedSecret:
		f.Sealed = append(f.Sealed, res)
	}

	switch e.kind {
	case kindWebhook:
		f.webhookNames = append(f.webhookNames, e.name)
	case kindSecret:
		f.sealedNames = append(f.sealedNames, e.name)
	}
}
