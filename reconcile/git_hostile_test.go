package reconcile_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"millwright/reconcile"
	"millwright/schema"
	"millwright/state"
	"millwright/state/statetest"
)

// pack is a pack file in the making: it can be told to lie.
type pack struct {
	body    bytes.Buffer
	count   uint32
	damaged func([]byte) []byte // the finished pack, before it is sent
}

const (
	kindCommit = 1
	kindTree   = 2
	kindBlob   = 3
	kindRef    = 7 // a delta against an object named by its hash
)

// raw adds an entry whose header declares a size, with a body of any other.
func (p *pack) raw(kind byte, declared int64, base []byte, body io.Reader) {
	p.head(kind, declared)
	p.body.Write(base)
	z, _ := zlib.NewWriterLevel(&p.body, zlib.BestSpeed)
	_, _ = io.Copy(z, body)
	_ = z.Close()
}

// bomb adds an entry whose header declares a size, with 64 MiB of zeros.
func (p *pack) bomb(declared int64) {
	p.head(kindBlob, declared)
	p.body.Write(deflatedZeros())
}

// deflatedZeros returns 64 MiB of zeros, deflated once for all tests of a process.
var deflatedZeros = sync.OnceValue(func() []byte {
	var p pack
	p.raw(kindBlob, 0, nil, some(64<<20))
	return p.body.Bytes()[1:]
})

// head adds the header of an entry.
func (p *pack) head(kind byte, declared int64) {
	c := kind<<4 | byte(declared&15)
	for declared >>= 4; declared > 0; declared >>= 7 {
		p.body.WriteByte(c | 0x80)
		c = byte(declared & 0x7f)
	}
	p.body.WriteByte(c)
	p.count++
}

// add adds an honest object and returns its hash.
func (p *pack) add(kind byte, content []byte) []byte {
	p.raw(kind, int64(len(content)), nil, bytes.NewReader(content))
	name := map[byte]string{kindCommit: "commit", kindTree: "tree", kindBlob: "blob"}[kind]
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", name, len(content)), content...))
	return sum[:]
}

func (p *pack) bytes() []byte {
	var out bytes.Buffer
	out.WriteString("PACK")
	_ = binary.Write(&out, binary.BigEndian, uint32(2))
	_ = binary.Write(&out, binary.BigEndian, p.count)
	out.Write(p.body.Bytes())
	sum := sha1.Sum(out.Bytes())
	out.Write(sum[:])
	if p.damaged != nil {
		return p.damaged(out.Bytes())
	}
	return out.Bytes()
}

// item is an entry of a tree object.
type item struct {
	mode, name string
	hash       []byte
}

func (p *pack) tree(items ...item) []byte {
	var body bytes.Buffer
	for _, i := range items {
		fmt.Fprintf(&body, "%s %s\x00%s", i.mode, i.name, i.hash)
	}
	return p.add(kindTree, body.Bytes())
}

func (p *pack) commit(tree []byte) []byte {
	return p.add(kindCommit, fmt.Appendf(nil, "tree %x\nauthor E\x1b[31mvil\u202e <e@example.com> 1700000000 +0000\ncommitter E <e@example.com> 1700000000 +0000\n\n<script>\x1b]0;x\x07\nbody\n", tree))
}

// definition adds a tree with one webhook, and what else it is told.
func (p *pack) definition(items ...item) []byte {
	hooks := p.tree(item{"100644", "a.yaml", p.add(kindBlob, []byte(hook("A")))})
	return p.tree(append([]item{{"40000", "webhooks", hooks}}, items...)...)
}

// host serves one pack, as the commit that main points to, over git's smart HTTP protocol.
func (p *pack) host(tb testing.TB, head []byte) string {
	name := hex.EncodeToString(head)
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/info/refs") {
			fmt.Fprint(w, line("# service=git-upload-pack\n"), "0000", line(name+" refs/heads/main\x00shallow ofs-delta\n"), "0000")
			return
		}
		fmt.Fprint(w, line("shallow "+name), "0000", line("NAK\n"))
		_, _ = w.Write(p.bytes())
	}))
	tb.Cleanup(s.Close)
	return s.URL + "/r.git"
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func some(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

// varint is a size in a delta.
func varint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func TestGitHostilePacks(t *testing.T) {
	junk := bytes.Repeat([]byte{0x11}, 20)
	tests := []struct {
		name string
		make func(p *pack) (head []byte)
		want string
	}{
		{"bomb", func(p *pack) []byte {
			p.bomb(1200 << 20)
			return p.commit(p.definition())
		}, "an object of 1258291200 bytes"},
		{"bomb after good objects", func(p *pack) []byte {
			head := p.commit(p.definition())
			p.bomb(1200 << 20)
			return head
		}, "an object of 1258291200 bytes"},
		{"many large objects", func(p *pack) []byte {
			for range 40 {
				p.raw(kindBlob, 31<<20, nil, some(1)) // the second is not even looked at
			}
			return p.commit(p.definition())
		}, "damaged pack"},
		{"more than it declares", func(p *pack) []byte {
			p.bomb(100)
			return p.commit(p.definition())
		}, "damaged pack"},
		{"less than it declares", func(p *pack) []byte {
			p.raw(kindBlob, 1<<20, nil, some(100))
			return p.commit(p.definition())
		}, "damaged pack"},
		{"delta that makes a bomb", func(p *pack) []byte {
			base := p.add(kindBlob, make([]byte, 1000))
			delta := append(varint(1000), varint(3<<30)...)
			p.raw(kindRef, int64(len(delta)), base, bytes.NewReader(delta))
			return p.commit(p.definition())
		}, "an object of 3221225472 bytes"},
		{"delta of a negative size", func(p *pack) []byte {
			base := p.add(kindBlob, make([]byte, 1000))
			delta := append(varint(1000), varint(1<<63+5)...)
			p.raw(kindRef, int64(len(delta)), base, bytes.NewReader(delta))
			return p.commit(p.definition())
		}, "an object of"},
		{"deltas that add up", func(p *pack) []byte {
			base := p.add(kindBlob, make([]byte, 1000))
			for range 40 {
				delta := append(varint(1000), varint(31<<20)...)
				p.raw(kindRef, int64(len(delta)), base, bytes.NewReader(delta))
			}
			return p.commit(p.definition())
		}, "more than 1024 MiB of new objects"},
		{"delta without a base", func(p *pack) []byte {
			delta := append(varint(10), varint(10)...)
			p.raw(kindRef, int64(len(delta)), junk, bytes.NewReader(delta))
			return p.commit(p.definition())
		}, "damaged pack"},
		{"empty delta", func(p *pack) []byte {
			p.raw(kindRef, 0, junk, some(0))
			return p.commit(p.definition())
		}, "damaged pack"},
		{"huge count", func(p *pack) []byte {
			head := p.commit(p.definition())
			p.count = 1<<32 - 1
			return head
		}, "new objects: more than 400000"},
		{"count too high", func(p *pack) []byte {
			head := p.commit(p.definition())
			p.count += 5
			return head
		}, "damaged pack"},
		{"cut", func(p *pack) []byte {
			p.damaged = func(b []byte) []byte { return b[:len(b)-40] }
			return p.commit(p.definition())
		}, "damaged pack"},
		{"wrong checksum", func(p *pack) []byte {
			p.damaged = func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
			return p.commit(p.definition())
		}, ""},
		{"no pack", func(p *pack) []byte {
			p.damaged = func([]byte) []byte { return []byte("GIF89a, and then some more of it") }
			return p.commit(p.definition())
		}, "damaged pack"},
		{"nothing", func(p *pack) []byte {
			p.damaged = func([]byte) []byte { return nil }
			return p.commit(p.definition())
		}, ""},
		{"too much", func(p *pack) []byte {
			head := p.commit(p.definition())
			p.damaged = func(b []byte) []byte { return append(b, make([]byte, 9<<20)...) }
			return head
		}, "more than the limit"},
		{"another commit", func(p *pack) []byte {
			p.commit(p.definition())
			return junk
		}, "object not found"},
		{"a blob for a commit", func(p *pack) []byte { return p.add(kindBlob, []byte("x")) }, "not a commit"},
		{"a commit without its tree", func(p *pack) []byte { return p.commit(junk) }, "cannot be read"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &pack{}
			head := test.make(p)
			source := gitSource(t, reconcile.GitConfig{URL: p.host(t, head), MaxFetchBytes: 8 << 20})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := source.Fetch(t.Context())
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 128<<20 {
				t.Errorf("%d MiB allocated", used>>20)
			}
		})
	}
}

func TestGitHostileTrees(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(p *pack, blob []byte) (tree []byte)
		code string // of a problem; empty: a part of the tree is missing; ok: nothing is wrong
	}{
		{"a blob for the root", func(p *pack, _ []byte) []byte { return p.add(kindBlob, []byte("x")) }, "unreadable"},
		{"malformed", func(p *pack, _ []byte) []byte { return p.add(kindTree, []byte("100644 a")) }, "unreadable"},
		{"malformed inside", func(p *pack, _ []byte) []byte {
			return p.definition(item{"40000", "automations", p.add(kindTree, []byte("100644 a"))})
		}, "unreadable"},
		{"harmless", func(p *pack, blob []byte) []byte { return p.definition(item{"100644", "README.md", blob}) }, "ok"},
		{"dot dot", func(p *pack, blob []byte) []byte { return p.definition(item{"40000", "..", p.tree()}) }, "unreadable"},
		{"dot", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", ".", blob})})
		}, "unreadable"},
		{"slash", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "../../../etc/x.yaml", blob})})
		}, "unreadable"},
		{"absolute", func(p *pack, blob []byte) []byte { return p.tree(item{"100644", "/etc/passwd", blob}) }, "unreadable"},
		{"twice", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a.yaml", blob}, item{"100644", "a.yaml", p.add(kindBlob, []byte("x"))})})
		}, "unreadable"},
		{"git look-alikes", func(p *pack, blob []byte) []byte {
			return p.definition(item{"40000", ".git", p.tree(item{"100644", "config", blob})}, item{"40000", ".GIT", p.tree()}, item{"40000", "git~1", p.tree()}, item{"40000", ".g\u200cit", p.tree()})
		}, "ok"},
		{"a git directory for a webhook", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"40000", ".git", p.tree(item{"100644", "x.yaml", blob})})})
		}, "ok"},
		{"case collision", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "A.yaml", blob}, item{"100644", "a.yaml", blob})})
		}, "duplicate-name"},
		{"control characters", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a\x1b[31m\n.yaml", blob})})
		}, "invalid-name"},
		{"not UTF-8", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a\xff.yaml", blob})})
		}, "invalid-name"},
		{"backslash", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", `a\x.yaml`, blob})})
		}, "invalid-name"},
		{"link", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"120000", "a.yaml", p.add(kindBlob, []byte("/etc/passwd"))})})
		}, "symlink"},
		{"submodule for a webhook", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"160000", "a.yaml", blob})})
		}, "symlink"},
		{"submodule elsewhere", func(p *pack, blob []byte) []byte { return p.definition(item{"160000", "vendor", blob}) }, "ok"},
		{"a file for a directory", func(p *pack, blob []byte) []byte { return p.tree(item{"40000", "webhooks", blob}) }, "unreadable"},
		{"a directory for a file", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a.yaml", p.tree()})})
		}, "unreadable"},
		{"a missing file", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a.yaml", bytes.Repeat([]byte{7}, 20)})})
		}, ""},
		{"large file pointer", func(p *pack, blob []byte) []byte {
			pointer := p.add(kindBlob, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"))
			return p.tree(item{"40000", "webhooks", p.tree(item{"100644", "a.yaml", pointer})})
		}, "any error"},
		{"many entries elsewhere", func(p *pack, blob []byte) []byte {
			return p.definition(item{"40000", "zoo", many(p, blob, "f%07d.txt")})
		}, "ok"},
		{"many webhooks", func(p *pack, blob []byte) []byte {
			return p.tree(item{"40000", "webhooks", many(p, blob, "f%07d.yaml")})
		}, "unreadable"},
		{"thirty thousand webhooks", func(p *pack, blob []byte) []byte {
			var items []item
			for n := range 30_000 {
				items = append(items, item{"100644", fmt.Sprintf("w%05d.yaml", n), blob})
			}
			return p.tree(item{"40000", "webhooks", p.tree(items...)})
		}, "tree-too-large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &pack{}
			head := p.commit(test.make(p, p.add(kindBlob, []byte(hook("A")))))
			source := gitSource(t, reconcile.GitConfig{URL: p.host(t, head), MaxObjectBytes: 64 << 20})
			b := newBench(t, statetest.Open(t, statetest.SQLite(t)), source, nil)
			r := b.Once(t.Context(), reconcile.Request{})
			switch test.code {
			case "ok":
				if r.Outcome != state.OutcomeApplied && r.Outcome != state.OutcomeUnchanged {
					t.Errorf("outcome %s: %s", r.Outcome, r.Message)
				}
			case "":
				b.check(r, state.OutcomeFailed, true)
			case "any error":
				b.check(r, state.OutcomeRefused, true)
			default:
				b.check(r, state.OutcomeRefused, true)
				if r.Problems[0].Code != test.code {
					t.Errorf("problems %+v", r.Problems[:1])
				}
				// It is the same for good: neither asked for nor fetched again.
				b.once(state.OutcomeRefused, false)
				b.check(b.Once(t.Context(), reconcile.Request{Force: true}), state.OutcomeRefused, false)
				for _, c := range b.now().Conditions() {
					if stalled := c.Type == "Stalled"; c.Status != map[bool]string{true: "True", false: "False"}[stalled] || c.Reason != "Refused" || c.Message != r.Message {
						t.Errorf("condition %+v", c)
					}
				}
			}
			if strings.ContainsAny(r.Message+r.Revision.Author+r.Revision.Subject, "\n\x1b\x07\u202e") {
				t.Errorf("control characters in %q, %q or %q", r.Message, r.Revision.Author, r.Revision.Subject)
			}
		})
	}
}

// TestGitManyLargeDirectories looks at packs of some hundred kilobytes whose directories would take gigabytes.
func TestGitManyLargeDirectories(t *testing.T) {
	tests := map[string]func(p *pack, blob []byte, n int) []byte{
		"one in many places": func(p *pack, blob []byte, _ int) []byte {
			var items []item
			for n := range 30_000 {
				items = append(items, item{"100644", fmt.Sprintf("f%05d", n), blob})
			}
			return p.tree(items...)
		},
		"long names": func(p *pack, blob []byte, n int) []byte {
			return p.tree(item{"100644", strings.Repeat("a", 1<<20+n), blob})
		},
	}
	for name, large := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pack{}
			blob := p.add(kindBlob, []byte("x"))
			var hash []byte
			var items []item
			for n := range 50 {
				if n == 0 || name == "long names" {
					hash = large(p, blob, n)
				}
				items = append(items, item{"40000", fmt.Sprintf("a%05d", n), hash})
			}
			snap := fetch(t, gitSource(t, reconcile.GitConfig{URL: p.host(t, p.commit(p.definition(item{"40000", "automations", p.tree(items...)})))}))
			for _, problem := range schema.Load(snap.FS, nil).Problems {
				if strings.Contains(problem.Message, "more than 32 MiB of directories") {
					return
				}
			}
			t.Error("all of them were looked at")
		})
	}
}

// TestGitMalformedTreeIsFetchedOnce looks again at a commit that can never be read, and does not fetch it again.
func TestGitMalformedTreeIsFetchedOnce(t *testing.T) {
	p := &pack{}
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	head := p.commit(p.tree(item{"40000", "..", p.tree()}, item{"100644", "noise", p.add(kindBlob, noise)}))
	source := gitSource(t, reconcile.GitConfig{URL: p.host(t, head), Path: "some/where"})
	for try, most := range []int64{200_000, 10_000, 10_000} {
		snap := fetch(t, source)
		if loaded := schema.Load(snap.FS, nil); loaded.Err != nil || loaded.Valid() || !strings.Contains(loaded.Problems[0].Message, `named ".."`) {
			t.Fatalf("problems %+v, error %v", loaded.Problems, loaded.Err)
		}
		if snap.Bytes > most || snap.Bytes == 0 {
			t.Errorf("try %d took %d bytes, want at most %d", try, snap.Bytes, most)
		}
	}
}

// many adds a directory of more than 4 MiB.
func many(p *pack, blob []byte, format string) []byte {
	var body bytes.Buffer
	for n := range 200_000 {
		fmt.Fprintf(&body, "100644 "+format+"\x00%s", n, blob)
	}
	return p.add(kindTree, body.Bytes())
}

// TestGitCloneDamagedUnderARunningSource garbles the files of a snapshot before they are read.
func TestGitCloneDamagedUnderARunningSource(t *testing.T) {
	p := &pack{}
	head := p.commit(p.definition())
	clone := t.TempDir()
	source := gitSource(t, reconcile.GitConfig{URL: p.host(t, head), CloneDir: clone})
	fetch(t, source)
	for _, pattern := range []string{"*.pack", "*.idx"} {
		for _, file := range glob(t, clone, "clone.git/objects/pack/"+pattern) {
			garble(t, file)
		}
	}
	b := newBench(t, statetest.Open(t, statetest.SQLite(t)), source, nil)
	b.once(state.OutcomeApplied, true)
	if loaded := schema.Load(fetch(t, source).FS, nil); !loaded.Valid() {
		t.Errorf("problems %+v, error %v", loaded.Problems, loaded.Err)
	}
}
