package schema

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// resources looks at one of the directories of a tree.
func (t *tree) resources(dir string) error {
	switch dir {
	case "webhooks":
		return t.flat(dir, kindWebhook)
	case "runners":
		return t.flat(dir, kindRunner)
	case "environments":
		return t.flat(dir, kindEnvironment)
	case "notifications":
		return t.flat(dir, kindNotification)
	case "secrets":
		return t.sealed(dir)
	case "automations":
		return t.folders(dir, kindAutomation, "")
	case "agents":
		return t.folders(dir, kindAgent, "")
	default:
		return t.folders(dir, kindSkill, "")
	}
}

// litter says whether a dot file is what editors and systems leave behind.
func litter(name string) bool {
	if !strings.HasPrefix(name, ".") {
		return false
	}
	second := append([]byte(name), 0)[1]
	return strings.HasPrefix(name, "._") || strings.HasPrefix(name, ".#") || !isAlnum(second) || stem(name) == ""
}

// nameless reports whether a file has dots alone before the ending of a definition: .yaml, ..yaml.
func nameless(e fs.DirEntry) bool {
	name := e.Name()
	return !e.IsDir() && isYAML(name) && strings.Trim(stem(name), ".") == ""
}

// flat reads webhooks/, runners/, environments/ or notifications/: one YAML file for each resource.
func (t *tree) flat(dir string, kind fileKind) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		name := e.Name()
		link := e.Type()&fs.ModeSymlink != 0 && path.Ext(name) == ""
		other := name[0] != '.' && (e.IsDir() || path.Ext(name) == ".json" || link)
		return (!litter(name) || nameless(e)) && (isYAML(name) || other)
	})
	if err != nil {
		return err
	}

	for _, e := range list {
		p := dir + "/" + e.Name()
		switch {
		case nameless(e):
			t.report(p, ruleInvalidName, "the file has no name before its ending", "rename it")
		case e.IsDir() && isYAML(e.Name()):
			t.report(p, ruleUnsupportedPath, "this is a directory; a file belongs here", "")
			err = t.nested(p, dir, 1)
		case e.IsDir():
			err = t.nested(p, dir, 1)
		case path.Ext(p) == "": // it may lead to a directory of definitions
			t.symlink(p)
		case path.Ext(p) == ".json": // a payload to try, or a resource in the wrong language
			t.warn(
				p,
				ruleUnsupportedPath,
				"no definition is read from here",
				"if it is one, move it to "+clip(dir+"/"+stem(e.Name())+".yaml"),
			)

		case path.Ext(p) != ".yaml":
			err = t.misplaced(p, dir+"/"+stem(e.Name())+".yaml")
		default:
			err = t.take(e, entry{path: p, kind: kind, name: stem(e.Name())})
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// folders reads automations/, agents/ or a skills/ directory: a directory for
// each resource, with one main file.
func (t *tree) folders(dir string, kind fileKind, agent string) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		name := e.Name()
		return !litter(name) &&
			(name[0] != '.' && (e.IsDir() || e.Type()&fs.ModeSymlink != 0) || isMarkdown(name) || isYAML(name))
	})
	if err != nil {
		return err
	}

	// A directory for each resource makes this most of the walk: the directories
	// are read side by side, and what they hold is taken in order.
	parts := make([]*tree, len(list))
	errs := make([]error, len(list))
	parallel(len(list), func(i int) {
		if e := list[i]; e.IsDir() {
			part := t.part()
			parts[i] = part
			errs[i] = t.memory.walk(
				part,
				dir+"/"+e.Name(),
				func() error { return part.folder(dir, e.Name(), kind, agent) },
			)
		}
	})

	for i, e := range list {
		name := e.Name()
		p := dir + "/" + name
		switch {
		case e.IsDir():
			t.add(parts[i])
			err = errs[i]
		case kind == kindAutomation && path.Ext(name) == ".md":
			if e.Type().IsRegular() {
				t.warn(
					p,
					ruleFlatAutomation,
					"an automation has a directory of its own",
					fmt.Sprintf("move it to %s/%s/automation.md", dir, clip(stem(name))),
				)
			}

			err = t.take(e, entry{path: p, kind: kind, name: stem(name), flat: true})

		case isMarkdown(name), isYAML(name):
			err = t.misplaced(p, dir+"/"+stem(name)+"/"+mainFile(kind))
		default:
			t.symlink(p)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// folder reads the directory of one automation, agent or skill.
func (t *tree) folder(parent, name string, kind fileKind, agent string) error {
	dir, want := parent+"/"+name, mainFile(kind)
	files := false
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		n := e.Name()
		if n[0] == '.' {
			return false
		}

		files = files || !e.IsDir()
		return n == want || nearMain(n, kind) || e.IsDir() || kind == kindAgent && fold(n) == "skills"
	})
	if err != nil {
		return err
	}

	found := false
	for _, e := range list {
		n := e.Name()
		p := dir + "/" + n
		switch {
		case n == want:
			found = true
			if e.IsDir() {
				t.report(p, ruleUnsupportedPath, "this is a directory; a file belongs here", "")
				break
			}

			err = t.take(e, entry{path: p, kind: kind, name: name, agent: agent})

		case !e.IsDir() && nearMain(n, kind):
			found = true
			err = t.misplaced(p, dir+"/"+want)
		case kind == kindAgent && e.Type()&fs.ModeSymlink != 0 && n == "skills":
			t.symlink(p)
		case kind == kindAgent && n == "skills" && e.IsDir():
			err = t.folders(p, kindSkill, name)
		case kind == kindAgent && e.IsDir() && (fold(n) == "skill" || fold(n) == "skills"):
			err = t.nearFolders(p, dir+"/skills", kindSkill)
		}

		if err != nil {
			return err
		}
	}

	for _, e := range list {
		if !e.IsDir() || e.Name() == want || found && kind == kindSkill ||
			kind == kindAgent && (fold(e.Name()) == "skill" || fold(e.Name()) == "skills") {
			continue
		}

		depth := 1
		if found {
			depth = 0 // deeper files belong to it
		}
		if err := t.nestedFolders(dir+"/"+e.Name(), parent, kind, depth); err != nil {
			return err
		}
	}

	if !found && files && len(t.problems) == 0 {
		t.warn(
			dir,
			ruleMissingPath,
			fmt.Sprintf("this directory has no %s, so it defines nothing", want),
			"add "+clip(dir)+"/"+want+", or move the files elsewhere",
		)
	}

	return nil
}
