package seal

import "io/fs"

// giveTo does nothing: a file takes its owner from its directory.
func giveTo(fs.FileInfo, string) error { return nil }
