// Package factories holds definition trees: ok/ are good ones, err/ are broken ones with the output that
// explains each, and the program carries one of them along as its demonstration.
package factories

import (
	"embed"
	"io/fs"
)

//go:embed ok/demo/webhooks ok/demo/automations
var demo embed.FS

// Demo returns the tree of ok/demo. Its automations select webhooks by the UIDs of DemoWebhooks, which
// are to be replaced by those that the webhooks get.
func Demo() fs.FS {
	sub, err := fs.Sub(demo, "ok/demo")
	if err != nil {
		panic(err) // only for an invalid path
	}
	return sub
}

// DemoWebhooks returns the webhook's name for each UID in Demo.
func DemoWebhooks() map[string]string {
	return map[string]string{
		"wh_01h2xcejqtf2nbrexx3vqjhp41": "ci",
		"wh_01h455vb4pex5vsknk084sn02q": "github",
		"wh_01h2e8kqvbfwea724h75qc655w": "uptime",
	}
}
