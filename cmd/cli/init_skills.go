package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"millwright/api/mcp"
	"millwright/runs/worker/preset"
)

// initSkills writes the skills that come with the program to dir, where agents look for skills.
func initSkills(s Streams, dir string) error {
	skills, err := mcp.Skills()
	if err != nil {
		return err
	}

	for _, place := range skillPlaces() {
		for _, skill := range skills {
			name := path.Join(place, skill.Name, "SKILL.md")
			err := WriteNew(filepath.Join(dir, filepath.FromSlash(name)), skill.Text)
			switch {
			case errors.Is(err, fs.ErrExist):
				fmt.Fprintf(s.Out, "%s exists already: it stays as it is\n", name)
			case err != nil:
				return err
			default:
				fmt.Fprintf(s.Out, "wrote %s\n", name)
			}
		}
	}

	fmt.Fprintln(s.Out, "agents find them there; docs/mcp.md tells how to give agents the tools of a server")
	return nil
}

// skillPlaces returns the directories of a repository in which the agents of the presets look for skills.
func skillPlaces() (places []string) {
	for _, name := range preset.Names() {
		p, _ := preset.Find(name)
		if p.Skills != "" && !strings.HasPrefix(p.Skills, ".config/") { // opencode reads those of the others
			places = append(places, p.Skills)
		}
	}
	return places
}
