package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

func (d *document) environment(name string) Environment {
	d.loose = true
	d.checkStructure("environment")
	e := Environment{
		Name:          name,
		Path:          d.path,
		Line:          d.line(),
		Description:   text(d.data, "description"),
		DockerImage:   text(d.data, "dockerImage"),
		SetupCommands: texts(d.data, "setupCommands"),
		Secrets:       texts(d.data, "secrets"),
	}

	d.grants(d.value("secrets"))
	e.Repositories = d.repositories()
	if m, ok := d.data["env"].(map[string]any); ok {
		e.Env = map[string]string{}
		for name := range m {
			e.Env[name] = text(m, name)
		}
	}
	return e
}

// repositories reads the key repositories.
func (d *document) repositories() (all []Repository) {
	for _, m := range objects(d.data, "repositories") {
		all = append(all, Repository{Owner: text(m, "owner"), Name: text(m, "name"), CodeForge: text(m, "codeForge")})
	}
	d.distinctRepositories(all)
	d.repositoryNames(all)
	return all
}

// distinctRepositories refuses a repository that is listed before, blanks at the ends of its names aside.
func (d *document) distinctRepositories(list []Repository) {
	first := map[Repository]int{}
	for i, r := range list {
		r = Repository{strings.TrimSpace(r.Owner), strings.TrimSpace(r.Name), strings.TrimSpace(r.CodeForge)}
		n := child(d.value("repositories"), fmt.Sprint(i))
		if at, twice := first[r]; twice && n != nil && r != (Repository{}) {
			d.errorAt(n, ruleInvalidValue,
				fmt.Sprintf("the repository %s/%s is already item %d of the list", clip(r.Owner), clip(r.Name), at+1),
				"delete one of the two")
			continue
		}

		first[r] = i
	}
}

// Forms of the names of repositories, and of the owners, which hold slashes at GitLab.
var (
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	ownerForm      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
)

// repositoryNames warns of repositories that are never checked out, because of the characters of their names.
func (d *document) repositoryNames(list []Repository) {
	for i, r := range list {
		at := child(d.value("repositories"), strconv.Itoa(i))
		for _, part := range []struct {
			key, value string
			form       *regexp.Regexp
		}{{"owner", r.Owner, ownerForm}, {"name", r.Name, repositoryForm}} {
			n := child(at, part.key)
			if n == nil || d.bad[n] || part.value == "" || part.form.MatchString(strings.TrimSpace(part.value)) {
				continue
			}

			p := d.report(
				d.spanOf(n),
				ruleInvalidValue,
				fmt.Sprintf("%s is not the %s of a repository", quoted(part.value), part.key),
				"letters, digits, dots, underscores and dashes, beginning with none of . and -",
			)
			p.Severity = SeverityWarning
		}
	}
}
