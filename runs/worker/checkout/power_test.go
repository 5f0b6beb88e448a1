//go:build unix

package checkout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millwright/runs/worker/checkout"
	"millwright/state/statetest/powerfs"
)

// These variables make the test binary a process that checks a repository out.
const (
	powerURL     = "MILLWRIGHT_TEST_POWER_URL"
	powerMirrors = "MILLWRIGHT_TEST_POWER_MIRRORS"
	powerInto    = "MILLWRIGHT_TEST_POWER_INTO"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(powerURL); url != "" {
		dir := os.Getenv(powerMirrors)
		made, err := checkout.Open(dir, maxBytes).Checkout(context.Background(), checkout.Source{URL: url},
			os.Getenv(powerInto), filepath.Join(filepath.Dir(dir), "bases", filepath.Base(os.Getenv(powerInto))))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(made.Commit)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// checkOut runs a process that checks a repository out, with its mirrors on a disk. It returns what it said.
func checkOut(t *testing.T, disk *powerfs.Disk, url, into string) (string, error) {
	t.Helper()
	dir, unmount := disk.Mount(t)
	defer unmount()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), powerURL+"="+url, powerMirrors+"="+filepath.Join(dir, "mirrors"), powerInto+"="+into)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestPowerFailureOfMirrors lets the power fail while a worker fetches into its mirror and copies it. The next
// checkout has the files of the present commit, with what is left of the mirror or with a new one. Of earlier
// commits, objects may be lost: the mirror is not synced.
func TestPowerFailureOfMirrors(t *testing.T) {
	r := newRemote(t)
	random := rand.New(rand.NewPCG(1, 0))
	disk := powerfs.NewDisk()
	failed := 0
	for round := range powerfs.Failures(t, 8) {
		files := map[string]string{"large.txt": strings.Repeat(fmt.Sprintln(round), 3000)}
		for i := range 6 {
			files[fmt.Sprintf("f%d.txt", i)] = fmt.Sprintf("%d of %d", i, round)
		}
		commit := r.commit("main", files)

		disk.FailAfter(1 + random.IntN([]int{10, 40, 120}[random.IntN(3)]))
		said, err := checkOut(t, disk, r.url(), filepath.Join(t.TempDir(), fmt.Sprint("lost-", round)))
		select {
		case <-disk.Failed():
			failed++
		default:
			if err != nil || said != commit {
				t.Fatalf("%d: before a failure: %v: %s", 1+round, err, said)
			}
			disk.Fail() // behind what it did
		}

		disk = disk.AfterFailure(random)
		into := filepath.Join(t.TempDir(), fmt.Sprint("work-", round))
		if said, err := checkOut(t, disk, r.url(), into); err != nil || said != commit {
			t.Fatalf("failure %d: the next checkout: %v: %s, not of %s", 1+round, err, said, commit)
		}
		for name, body := range files {
			if read(t, filepath.Join(into, name)) != body {
				t.Errorf("failure %d: %s has another content", 1+round, name)
			}
		}
		disk = disk.AfterFailure(random)
	}
	if failed == 0 {
		t.Error("the power never failed during a checkout")
	}
	t.Logf("the power failed %d times during a checkout", failed)
}
