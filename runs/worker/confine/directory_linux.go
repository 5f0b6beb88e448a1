package confine

// ownDir is where the program keeps what belongs to the machine: locks of accounts, and an empty directory.
const ownDir = "/run/millwright"
