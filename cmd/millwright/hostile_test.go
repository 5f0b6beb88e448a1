package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"millwright/bench/hostile/attack"
)

// mostMemory bounds the server's memory under any attack of strangers, in bytes.
const mostMemory = 400 << 20

// TestAcceptanceHostileSenders makes every attack at once on a server of its own process. It stays small, and
// an honest sender is always answered.
func TestAcceptanceHostileSenders(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand connections are not short")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has an address for each sender on loopback, and tells the most memory that a process had")
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < 12_000 {
		t.Skipf("ten thousand connections need as many open files: %d are allowed", files.Max)
	}
	program, environment := hostileProgram(t)
	s, err := attack.Start(t.Context(), program, t.TempDir(), environment...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	started, stop := s.Run(attack.All()...)
	defer stop()

	// Every attack continues until the honest sender has had enough answers since all of them began.
	const enough = 50
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	under := false
	for number, left := 0, enough; left > 0; number++ {
		select {
		case <-started:
			under = true
		case <-ctx.Done():
			t.Fatalf("all attacks under way: %t; %d deliveries are left", under, left)
		default:
		}
		if status := s.Deliver(ctx, number); status != 202 {
			t.Fatalf("honest delivery %d: answer %d", number, status)
		}
		if under {
			left--
		}
	}

	peak, err := s.Peak()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at most %d MB", peak>>20)
	if peak > mostMemory {
		t.Errorf("the server took %d MB; want at most %d", peak>>20, mostMemory>>20)
	}
}

// hostileProgram returns the program as users run it: the race detector takes memory of its own.
func hostileProgram(t *testing.T) (program string, environment []string) {
	t.Helper()
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" && s.Value == "true" {
			program = filepath.Join(t.TempDir(), "millwright")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return program, nil
		}
	}
	return os.Args[0], []string{runMain + "=1"}
}
