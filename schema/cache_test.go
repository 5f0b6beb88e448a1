package schema_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"millwright/schema"
)

// named is a tree that names the content of its files and notes which are read.
type named struct {
	fstest.MapFS
	mu   sync.Mutex
	read []string
}

func (n *named) Identity(name string) string {
	if f := n.MapFS[name]; f != nil {
		return fmt.Sprintf("%x", sha256.Sum256(f.Data))
	}
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(n.MapFS)) {
		if strings.HasPrefix(file, name+"/") {
			fmt.Fprintf(h, "%q %x\n", file, sha256.Sum256(n.MapFS[file].Data))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (n *named) Open(name string) (fs.File, error) {
	if n.MapFS[name] != nil {
		n.mu.Lock()
		n.read = append(n.read, name)
		n.mu.Unlock()
	}
	return n.MapFS.Open(name)
}

// TestCacheChangesNothing loads trees that change at random, good and bad, with and without a cache: the
// results are the same, and only what changed or has a problem is read.
func TestCacheChangesNothing(t *testing.T) {
	texts := []string{
		"secretName: T\n", "secretName: U\n", "secretNam: T\n", "{{{", "", "secretName: T\nauthMode: none\n",
		"---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: '@daily'\n---\nGo.\n",
		"---\nagent: x\n---\nGo.\n", "---\nagentType: FOREMAN\n---\nLead.\n", "\xff\xfe",
	}
	paths := []string{
		"webhooks/a.yaml", "webhooks/b.yaml", "webhooks/a.yml", "webhooks/B.yaml", "automations/x/automation.md",
		"automations/y/automation.md", "agents/x/agent.md", "runners/r.yaml", "factory.yaml", "skills/s/SKILL.md", "other.txt",
		"agents/x/skills/s/SKILL.md", "agents/x/skills/t/SKILL.md", "agents/x/notes.txt", "agents/x/deep/agent.md", "agents/y/skills/s/SKILL.md",
	}
	random := rand.New(rand.NewPCG(1, 2))
	tree := fstest.MapFS{}
	var cache schema.Cache
	spared := 0
	var dirty []string // had a problem in the tree before
	for round := range 600 {
		before := map[string]string{}
		for name, f := range tree {
			before[name] = string(f.Data)
		}
		for range random.IntN(3) {
			path := paths[random.IntN(len(paths))]
			if random.IntN(4) == 0 {
				delete(tree, path)
			} else {
				tree[path] = &fstest.MapFile{Data: []byte(texts[random.IntN(len(texts))])}
			}
		}
		known := &schema.Known{}
		if random.IntN(2) == 0 {
			known = nil
		}
		with := &named{MapFS: tree}
		got, want := cache.LoadContext(t.Context(), with, known), schema.Load(tree, known)
		if !reflect.DeepEqual(got.Problems, want.Problems) || !reflect.DeepEqual(got.Factory, want.Factory) || got.Files != want.Files ||
			!reflect.DeepEqual(got.NotChecked, want.NotChecked) || got.Err != nil {
			t.Fatalf("round %d:\n%+v\nis not\n%+v", round, got, want)
		}
		for name := range tree {
			if string(got.Source(name)) != string(want.Source(name)) {
				t.Errorf("round %d: source of %s is %q, want %q", round, name, got.Source(name), want.Source(name))
			}
		}
		spared += want.Files - len(with.read)
		for name, f := range tree {
			clean := !slices.ContainsFunc(want.Problems, func(p schema.Problem) bool { return p.Path == name })
			if was, there := before[name]; there && was == string(f.Data) && clean && !slices.Contains(dirty, name) && slices.Contains(with.read, name) {
				t.Errorf("round %d: %s was read again", round, name)
			}
		}
		dirty = dirty[:0]
		for _, p := range want.Problems {
			dirty = append(dirty, p.Path)
		}
	}
	if spared < 100 {
		t.Errorf("only %d files were not read", spared)
	}
}
