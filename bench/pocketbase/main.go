// Command pocketbase serves a PocketBase with a collection of runs, for the comparison in bench/runs. It
// is a module of its own, so that nothing of PocketBase is a dependency of the program.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pocketbase DIRECTORY ADDRESS")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pocketbase:", err)
		os.Exit(1)
	}
}

// serve serves the collection runs, which anybody may create and list, so that no time goes into signing in.
func serve(dir, address string) error {
	app := pocketbase.NewWithConfig(pocketbase.Config{DefaultDataDir: dir, HideStartBanner: true})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}

	if _, err := app.FindCollectionByNameOrId("runs"); err != nil {
		c := core.NewBaseCollection("runs")
		c.ListRule, c.ViewRule, c.CreateRule = types.Pointer(""), types.Pointer(""), types.Pointer("")
		for _, name := range []string{"title", "prompt", "state", "source", "name", "model_id", "creator"} {
			c.Fields.Add(&core.TextField{Name: name, Max: 10_000})
		}

		c.Fields.Add(
			&core.JSONField{Name: "config"},
			&core.JSONField{Name: "metadata"},
			&core.AutodateField{
				Name:     "created",
				OnCreate: true,
			},
			&core.AutodateField{Name: "updated", OnCreate: true, OnUpdate: true},
		)

		c.AddIndex("runs_by_update", false, "updated, id", "")
		c.AddIndex("runs_by_state", false, "state, updated, id", "")
		if err := app.Save(c); err != nil {
			return err
		}
	}

	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}

	ln.Close()
	return apis.Serve(app, apis.ServeConfig{HttpAddr: address, ShowStartBanner: false})
}
