package cli

import (
	"fmt"
	"os"
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

// EnvOr returns the environment variable, or fallback where it is unset or empty.
func EnvOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
