package schema

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Files that are nearly at a resource path. Each is a problem that names the right path: a check that passed
// over them would call a broken tree clean.

// misplaced reports a file that is nearly at a resource path.
func (t *tree) misplaced(p, right string) error {
	if t.count.Add(1) > MaxFiles {
		return errTooMany
	}
	t.report(p, ruleUnsupportedPath, "no definition is read from here", "move it to "+clip(right))
	return nil
}

// nearDirectory returns the directory that a name was probably meant to be.
func nearDirectory(name string) string {
	for _, d := range directories {
		if folded := fold(name); folded == d || editDistance(folded, d) <= 1 {
			return d
		}
	}
	return ""
}

// nearRoot returns where the definition belongs that a file in the root was probably meant to be, when the
// directory for it is not there.
func (t *tree) nearRoot(name string, root []fs.DirEntry) string {
	dir := strings.ToLower(stem(name))
	if isMarkdown(name) && stem(name) == strings.ToUpper(stem(name)) { // AUTOMATION.md: a document for readers
		return ""
	}

	right := "automations/<name>/automation.md"
	switch {
	case (dir == "automation" || dir == "automations") && (isYAML(name) || isMarkdown(name)):
		dir = "automations"
	case slices.Contains([]string{"webhooks", "runners", "environments", "notifications"}, dir) && isYAML(name):
		right = dir + "/<name>.yaml"
	default:
		return ""
	}

	if slices.ContainsFunc(root, func(e fs.DirEntry) bool { return e.Name() == dir }) {
		return ""
	}

	return right
}

// maxNesting bounds how deep misplaced files are looked for.
const maxNesting = 32

// nested reports the YAML files below a directory that holds no directories.
func (t *tree) nested(dir, top string, depth int) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		return e.Name()[0] != '.' && (e.IsDir() || isYAML(e.Name()))
	})
	for _, e := range list {
		if err != nil {
			return err
		}

		p := dir + "/" + e.Name()
		switch {
		case !e.IsDir():
			name := stem(e.Name())
			if strings.EqualFold(name, top) || strings.EqualFold(name+"s", top) { // webhooks/ci/webhook.yaml
				name = path.Base(dir)
			}

			err = t.misplaced(p, top+"/"+name+".yaml")

		case depth < maxNesting:
			err = t.nested(p, top, depth+1)
		default:
			t.tooDeep(p)
		}
	}

	return err
}

func (t *tree) tooDeep(dir string) {
	t.report(
		dir,
		ruleUnsupportedPath,
		"no definition is read from here, nor from the directories below",
		"move what it holds",
	)
}

// nearMain says whether a file was probably meant to be the main file of its
// directory.
func nearMain(name string, kind fileKind) bool {
	want := mainFile(kind)
	if name == want || !isMarkdown(name) && !isYAML(name) {
		return false
	}
	a, b := strings.ToLower(stem(name)), strings.ToLower(stem(want))
	return a == b || editDistance(a, b) <= 1
}

// nestedFolders reports main files that lie too deep: below a directory of a resource, or, when that has no
// main file itself, at any depth.
func (t *tree) nestedFolders(dir, top string, kind fileKind, depth int) error {
	list, err := t.list(
		dir,
		func(e fs.DirEntry) bool { return e.Name()[0] != '.' && (e.IsDir() || e.Name() == mainFile(kind)) },
	)
	for _, e := range list {
		if err != nil {
			return err
		}

		p := dir + "/" + e.Name()
		switch {
		case e.Name() == mainFile(kind) && !e.IsDir():
			err = t.misplaced(p, top+"/"+path.Base(dir)+"/"+e.Name())
		case !e.IsDir() || depth == 0:
		case depth < maxNesting:
			err = t.nestedFolders(p, top, kind, depth+1)
		default:
			t.tooDeep(p)
		}
	}

	return err
}

// nearly reports the files of a directory whose name is nearly one of the
// tree's: webhook/x.yaml, Automations/x/automation.md.
func (t *tree) nearly(dir, right string) error {
	switch right {
	case "webhooks", "runners", "environments", "notifications":
		list, err := t.list(
			dir,
			func(e fs.DirEntry) bool { return !e.IsDir() && e.Name()[0] != '.' && isYAML(e.Name()) },
		)
		for _, e := range list {
			if err != nil {
				return err
			}
			err = t.misplaced(dir+"/"+e.Name(), right+"/"+stem(e.Name())+".yaml")
		}

		return err

	case "secrets":
		return t.misplacedSecrets(dir)
	case "automations":
		return t.nearFolders(dir, right, kindAutomation)
	case "agents":
		return t.nearFolders(dir, right, kindAgent)
	default:
		return t.nearFolders(dir, right, kindSkill)
	}
}

// misplacedSecrets reports the files of age in a directory that is not read.
func (t *tree) misplacedSecrets(dir string) error {
	list, err := t.list(dir, func(e fs.DirEntry) bool { return !e.IsDir() && isAge(e.Name()) })
	for _, e := range list {
		if err != nil {
			return err
		}
		err = t.misplaced(dir+"/"+e.Name(), "secrets/"+stem(e.Name())+".age")
	}
	return err
}

func isAge(name string) bool { return strings.EqualFold(path.Ext(name), ".age") }

func (t *tree) nearFolders(dir, right string, kind fileKind) error {
	want := mainFile(kind)
	list, err := t.list(dir, func(e fs.DirEntry) bool {
		return e.Name()[0] != '.' &&
			(e.IsDir() || kind == kindAutomation && path.Ext(e.Name()) == ".md" && isMarkdown(e.Name()))
	})
	if err != nil {
		return err
	}

	for _, e := range list {
		sub := dir + "/" + e.Name()
		if !e.IsDir() {
			if err := t.misplaced(sub, right+"/"+stem(e.Name())+"/"+want); err != nil {
				return err
			}
			continue
		}

		files, err := t.list(
			sub,
			func(e fs.DirEntry) bool { return !e.IsDir() && (e.Name() == want || nearMain(e.Name(), kind)) },
		)
		if err != nil {
			return err
		}

		for _, f := range files {
			if err := t.misplaced(sub+"/"+f.Name(), right+"/"+e.Name()+"/"+want); err != nil {
				return err
			}
		}
	}

	return nil
}
