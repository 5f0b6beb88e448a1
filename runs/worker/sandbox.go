package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"millwright/runs/worker/egress"
	"millwright/runs/worker/sandbox"
)

// Sandbox configures the sandbox of a harness, which bubblewrap makes.
type Sandbox struct {
	// Network is what the harness reaches. When it is not given, a preset reaches the hosts of its model, and
	// a command reaches nothing.
	Network Network `json:"network"`
	// Memory bounds the memory of all processes together, as 512m or 2g; empty: no bound.
	Memory string `json:"memory"`
	// Processes bounds processes and threads; sandbox.DefaultProcesses when zero.
	Processes int `json:"processes"`
	// ReadOnly are directories of the machine that the harness sees beside the system.
	ReadOnly []string `json:"readOnly"`
}

// bubblewrap is the name of the sandbox in the settings.
const bubblewrap = "bubblewrap"

// UnmarshalJSON reads the name of the sandbox, or its settings.
func (s *Sandbox) UnmarshalJSON(text []byte) error {
	if name, ok := textOf(text); ok {
		if name != bubblewrap {
			return fmt.Errorf("want %s, or keys and values", bubblewrap)
		}
		*s = Sandbox{}
		return nil
	}

	type plain Sandbox
	return decodeStrict(text, (*plain)(s))
}

// Network is what a sandbox reaches: none, open, or the hosts of a list.
type Network struct {
	Mode  string   `json:"-"` // none or open; empty: Allow
	Allow []string `json:"allow"`
}

// UnmarshalJSON reads none, open or a list of hosts.
func (n *Network) UnmarshalJSON(text []byte) error {
	if mode, ok := textOf(text); ok {
		if mode != string(sandbox.None) && mode != string(sandbox.Shared) {
			return errors.New("want none, open, or allow: [HOST, …]")
		}
		*n = Network{Mode: mode}
		return nil
	}

	type plain Network
	if err := decodeStrict(text, (*plain)(n)); err != nil {
		return err
	}
	if n.Allow == nil {
		n.Allow = []string{}
	}
	return nil
}

// textOf returns the text that JSON is.
func textOf(data []byte) (text string, ok bool) {
	return text, json.Unmarshal(data, &text) == nil
}

func decodeStrict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// Bounds of the settings of a sandbox.
const (
	minProcesses = 16
	maxProcesses = 100_000
	maxAllowed   = 200
)

// Check returns the place of what is wrong with the settings, below those of the sandbox, and the reason.
func (s Sandbox) Check() (at string, err error) {
	for i, name := range s.Network.Allow {
		place := fmt.Sprintf(".network.allow[%d]", i)
		if err := egress.CheckName(name); err != nil {
			return place, err
		}
		if slices.Contains(s.Network.Allow[:i], name) {
			return place, fmt.Errorf("%q is there twice", name)
		}
	}

	switch n := len(s.Network.Allow); {
	case s.Network.Allow != nil && n == 0:
		return ".network.allow", errors.New("it names no host: give network: none, or the hosts that the agent reaches")
	case n > maxAllowed:
		return ".network.allow", fmt.Errorf("it names %d hosts: want at most %d", n, maxAllowed)
	case s.Memory != "" && !memorySize.MatchString(strings.ToLower(s.Memory)):
		return ".memory", fmt.Errorf("%q: want a size like 512m or 2g", s.Memory)
	case s.Processes != 0 && (s.Processes < minProcesses || s.Processes > maxProcesses):
		return ".processes", fmt.Errorf("%d: want %d to %d", s.Processes, minProcesses, maxProcesses)
	}

	for i, dir := range s.ReadOnly {
		if err := sandbox.CheckReadOnly(dir); err != nil {
			return fmt.Sprintf(".readOnly[%d]", i), err
		}
	}
	return "", nil
}

// memorySize matches a size in the form of engines.
var memorySize = regexp.MustCompile(`^([0-9]+)([bkmg])$`)

// bytesOf returns the bytes of a size that memorySize matches.
func bytesOf(size string) int64 {
	m := memorySize.FindStringSubmatch(size)
	if m == nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(m[1], 10, 40)
	if err != nil {
		return math.MaxInt64
	}
	return n << map[string]int{"b": 0, "k": 10, "m": 20, "g": 30}[m[2]]
}
