package confine

// Host starts the runs of one worker.
type Host struct {
	cfg     Config
	cgroup  cgroup // empty: none
	why     error  // reason why there is none
	private bool
}
