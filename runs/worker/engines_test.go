package worker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/cmd/cli"
	"millwright/runs/worker/confine"
)

// TestMain lets this binary stand in for docker and kubectl, for a worker that can be killed, and for a
// keeper, by the name that it is called by. No engine is at hand where the tests run: the stand-ins take the
// same command lines, refuse what they do not know, and run the command on this machine.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "docker":
		os.Exit(fakeDocker(os.Args[1:]))
	case "kubectl":
		os.Exit(fakeKubectl(os.Args[1:]))
	case "kubelet":
		os.Exit(fakeKubelet(os.Args[1]))
	case "worker":
		os.Exit(workerProcess(os.Args[1:]))
	case "acp-agent":
		os.Exit(fakeACP())
	case "keeper":
		os.Exit(confine.Keep(os.Args[1:]))
	case "millwright-mcp":
		os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	case "millwright":
		os.Exit(inSandbox(os.Args[1]))
	}
	os.Exit(outsideTmp(m))
}

// outsideTmp runs the tests with temporary directories that harnesses share with them: where runs have a /tmp
// of their own, those in /tmp would be hidden.
func outsideTmp(m *testing.M) int {
	dir, err := os.MkdirTemp("/var/lib", "millwright-test-")
	if err != nil { // not root: no run has a /tmp of its own
		return m.Run()
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o711)
	os.Setenv("TMPDIR", dir)
	return m.Run()
}

const engineDir = "FAKE_ENGINE_DIR"

// engines puts the stand-ins first in the PATH and returns the directory in which they keep what they did.
func engines(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, kept := t.TempDir(), t.TempDir()
	for _, name := range []string{"docker", "kubectl", "kubelet"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv(engineDir, kept)
	return kept
}

func kept(name string) string { return filepath.Join(os.Getenv(engineDir), name) }

func refuse(status int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return status
}

// flags reads flags, each of which has a value unless it is listed as a switch. Of one letter there is -t.
func flags(args []string, known, switches []string) (values map[string][]string, rest []string, err error) {
	values = map[string][]string{}
	for len(args) > 0 && (strings.HasPrefix(args[0], "--") || args[0] == "-t") {
		name, value, has := strings.Cut(args[0], "=")
		args = args[1:]
		switch {
		case slices.Contains(switches, name):
		case !slices.Contains(known, name):
			return nil, nil, fmt.Errorf("unknown flag: %s", name)
		case !has && len(args) == 0:
			return nil, nil, fmt.Errorf("flag needs an argument: %s", name)
		case !has:
			value, args = args[0], args[1:]
		}
		values[name] = append(values[name], value)
	}
	return values, args, nil
}

// container runs a command, and returns its status. A file names its process before the command begins, so
// that whoever sees a sign of the command can end it, even if this process was killed.
func container(name string, cmd *exec.Cmd) int {
	if cmd.Err != nil {
		return refuse(127, "exec: %q: executable file not found", cmd.Args[0])
	}
	inner := append([]string{"-c", `printf %s $$ > "$0"; exec "$@"`, kept(name + ".pid"), cmd.Path}, cmd.Args[1:]...)
	outer := exec.Command("sh", inner...)
	cmd.Path, cmd.Args = outer.Path, outer.Args
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as in another container, out of reach of our group
	if err := cmd.Run(); cmd.ProcessState == nil {
		return refuse(125, "%v", err)
	}
	os.Remove(kept(name + ".pid"))
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// end stops a container as the engines do.
func end(name string, grace time.Duration) {
	text, err := os.ReadFile(kept(name + ".pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return
	}
	syscall.Kill(-pid, syscall.SIGTERM)
	for deadline := time.Now().Add(grace); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(-pid, 0) != nil {
			return
		}
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

func fakeDocker(args []string) int {
	record, _ := json.Marshal(args)
	if _, err := os.Stat(kept("away")); err == nil {
		return refuse(1, "Cannot connect to the Docker daemon. Is the docker daemon running?")
	}
	switch args[0] {
	case "run":
		known := []string{"--name", "--label", "--log-driver", "--network", "--cap-drop", "--security-opt", "--pids-limit", "--user", "--mount", "--workdir", "--cpus", "--memory", "--memory-swap", "--env-file", "--env", "--entrypoint"}
		f, rest, err := flags(args[1:], known, []string{"--rm", "--interactive", "--init"})
		if err != nil || len(rest) == 0 {
			return refuse(125, "docker: %v", err)
		}
		if rest[0] == "missing" {
			return refuse(125, "Unable to find image 'missing:latest' locally")
		}
		name := f["--name"][0]
		os.WriteFile(kept(name+".json"), record, 0o600)
		mount := strings.Split(f["--mount"][0], ",")
		if len(mount) != 3 || mount[2] != "target=/work" || f["--workdir"][0] != "/work" {
			return refuse(125, "docker: mount %v", mount)
		}
		cmd := exec.Command(append(f["--entrypoint"], "true")[0], rest[1:]...)
		cmd.Dir = strings.TrimPrefix(mount[1], "source=")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "IMAGE=" + rest[0]}
		for _, file := range f["--env-file"] {
			in, err := os.Open(file)
			if err != nil {
				return refuse(125, "docker: open %s", file)
			}
			for lines := bufio.NewScanner(in); lines.Scan(); {
				cmd.Env = append(cmd.Env, lines.Text())
			}
			in.Close()
		}
		for _, v := range f["--env"] {
			if !strings.Contains(v, "=") {
				v += "=" + os.Getenv(v)
			}
			cmd.Env = append(cmd.Env, v)
		}
		return container(name, cmd)
	case "stop":
		f, rest, err := flags(args[1:], []string{"-t"}, nil)
		if err != nil || len(rest) != 1 {
			return refuse(1, "docker stop: %v", err)
		}
		seconds, _ := strconv.Atoi(f["-t"][0])
		end(rest[0], time.Duration(seconds)*time.Second)
		return 0
	case "rm":
		_, rest, err := flags(args[1:], nil, []string{"--force"})
		if err != nil || len(rest) != 1 {
			return refuse(1, "docker rm: %v", err)
		}
		end(rest[0], 0)
		os.WriteFile(kept(rest[0]+".removed"), nil, 0o600)
		return 0
	case "ps":
		f, _, err := flags(args[1:], []string{"--filter"}, []string{"--all", "--quiet"})
		if err != nil {
			return refuse(1, "docker ps: %v", err)
		}
		if f["--filter"][0] == "label=millwright.worker=worker-stale" {
			fmt.Println("stale-1")
		}
		return 0
	}
	return refuse(1, "docker: %q is not a docker command", args[0])
}
