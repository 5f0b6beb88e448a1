package sandbox_test

import (
	"os/exec"
	"testing"

	"millwright/runs/worker/confine"
)

// BenchmarkStart starts /bin/true and waits for its end, in a sandbox and beside it.
func BenchmarkStart(b *testing.B) {
	box := open(b)
	plain := confine.Run{Name: "plain", Dir: box.spec.Root, Account: box.run.Account}
	for name, start := range map[string]func(*exec.Cmd) (confine.Process, error){
		"beside": func(cmd *exec.Cmd) (confine.Process, error) { return box.host.Start(cmd, plain) },
		"inside": func(cmd *exec.Cmd) (confine.Process, error) {
			return box.Start(box.host, cmd, box.run, box.spec)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := start(&exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Dir: "/"})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Wait(); err != nil {
					b.Fatal(err)
				}
				if err := p.Kill(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
