package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// sampleMemory is how often the memory of a sandbox is measured.
const sampleMemory = 100 * time.Millisecond

// watchMemory calls over when the processes of this sandbox hold more memory than most.
func watchMemory(most int64, over func()) {
	for {
		if residentMemory() > most && proportionalMemory() > most {
			over()
			return
		}
		time.Sleep(sampleMemory)
	}
}

// residentMemory returns the memory of all processes but this one. It counts shared pages for each process.
func residentMemory() int64 {
	page := int64(os.Getpagesize())
	total := segments()
	eachProcess(func(dir string) {
		total += resident(dir) * page
	})
	return total
}

func resident(dir string) int64 {
	text, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages
}

// proportionalMemory is residentMemory with each shared page counted once, as far as processes let it be
// seen.
func proportionalMemory() int64 {
	total := segments()
	eachProcess(func(dir string) {
		text, err := os.ReadFile(dir + "/smaps_rollup")
		if size, ok := sizeIn(text, "Pss:"); err == nil && ok {
			total += size
			return
		}
		total += resident(dir) * int64(os.Getpagesize())
	})
	return total
}

// sizeIn returns a size in kB of a file of the kernel, in bytes.
func sizeIn(text []byte, name string) (int64, bool) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		return size << 10, err == nil
	}
	return 0, false
}

// eachProcess calls f with the directory of each process of the sandbox, but for this one.
func eachProcess(f func(dir string)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()

	names, _ := dir.Readdirnames(-1)
	own := strconv.Itoa(os.Getpid())
	for _, name := range names {
		if name != own && name[0] >= '1' && name[0] <= '9' {
			f("/proc/" + name)
		}
	}
}

// segments returns the shared memory that no process has mapped.
func segments() (total int64) {
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}

	const attached, resident = 6, 14 // fields
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= resident || fields[attached] != "0" {
			continue
		}
		size, _ := strconv.ParseInt(fields[resident], 10, 64)
		total += size
	}
	return total
}
