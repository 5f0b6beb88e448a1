package confine

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a range of user IDs.
const (
	firstUID  = 1000
	lastUID   = 1<<31 - 1
	maxInPool = 1000
)

// Range reads a range of user IDs, such as 70000-70063, both ends included.
func Range(text string) (first, last uint32, err error) {
	from, to, both := strings.Cut(text, "-")
	low, err1 := strconv.ParseUint(from, 10, 32)
	high, err2 := strconv.ParseUint(to, 10, 32)
	switch {
	case !both || err1 != nil || err2 != nil:
		return 0, 0, fmt.Errorf("uidRange %q: want two user IDs like 70000-70063", text)
	case low > high:
		return 0, 0, fmt.Errorf("uidRange %q: the first user ID is greater than the last", text)
	case low < firstUID || high > lastUID:
		return 0, 0, fmt.Errorf("uidRange %q: want user IDs from %d to %d", text, firstUID, lastUID)
	case high-low >= maxInPool:
		return 0, 0, fmt.Errorf(
			"uidRange %q: it has %d user IDs, and at most %d are used", text, high-low+1, maxInPool)
	}

	return uint32(low), uint32(high), nil
}
