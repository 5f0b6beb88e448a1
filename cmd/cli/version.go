package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"millwright/schema"
)

// version is the program's version; a release build sets it with -ldflags "-X millwright/cmd/cli.version=…".
var version = "dev"

// Version returns the version, with the commit where the build knows it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return version
}

func newVersion(s Streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, versionLine())
			return err
		},
	}
}

// versionLine is what --version prints.
func versionLine() string {
	return fmt.Sprintf(
		"millwright %s (definition schema %s, %s, %s/%s)",
		Version(),
		schema.SchemaVersion,
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
	)
}
