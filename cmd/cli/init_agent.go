package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"millwright/runs/worker/preset"
)

// settingsFile is where init --agent writes the settings.
const settingsFile = "millwright.yaml"

// initAgent writes settings by which an agent executes the runs of the tree in dir.
func initAgent(s Streams, agent, dir, factory string) error {
	p, ok := preset.Find(agent)
	if !ok || p.Program == "" {
		return Usagef("--agent %q: want one of %s", agent, strings.Join(preset.Names(), ", "))
	}

	text := fmt.Sprintf(`# Serve with: millwright serve --config %[1]s
factories:
  - name: %[2]q
    source: { dir: %[3]q }
harness: %[4]s
harnesses:
  %[4]s:
    preset: %[4]s
    env: [%[5]s]
    # The agent can read what this user can. On a server, use a sandbox, another account or a container in place of
    # sameUser: user: NAME, uidRange: FIRST-LAST, container: {image: IMAGE} or, on Linux with bubblewrap:
    # sandbox: {network: {allow: [%[6]s]}}
    sameUser: true
`, settingsFile, factory, dir, p.Name, strings.Join(p.SignIn, ", "),
		cmp.Or(strings.Join(p.Hosts, ", "), "api.example.com"))

	err := WriteNew(settingsFile, []byte(text))
	if errors.Is(err, fs.ErrExist) {
		return &Exit{ExitProblem, fmt.Errorf("%s exists already: nothing was changed", settingsFile)}
	}
	if err != nil {
		return err
	}

	fmt.Fprintf(s.Out, "wrote %s: %s executes the runs of %s\n", settingsFile, p.Name, dir)
	if _, err := exec.LookPath(p.Program); err != nil {
		fmt.Fprintf(s.Out, "%s is not on PATH: npm install -g %s\n", p.Program, p.Package)
	}
	fmt.Fprintf(s.Out, "set %s, then: millwright serve --config %s\n", p.SignIn[0], settingsFile)

	return nil
}
