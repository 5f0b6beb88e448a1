package schema

// fact is a place in the tree that a rule beyond one file looks at. The facts
// of a tree stay with its Factory, so that the rules that need state can run
// again without the files.
type fact struct {
	path                       string
	value                      string
	line, col, endLine, endCol int32
	start, end                 int32 // byte offsets of the value in its file, for fixes
	kind                       factKind
	quote                      byte // the quotes around the value, or 0
	urlToken, token            bool // how the webhook whose secret this is uses it
	registered                 bool // the server makes the secret if it does not exist
	outputs                    bool // the automation whose trigger this is has outputs
}

type factKind uint8

const (
	factSecret      factKind = iota // secretName of a webhook
	factGrant                       // a secret that runs are given
	factReference                   // a secret that an MCP server of runs is given
	factWebhookID                   // an entry of webhook_ids
	factHarness                     // a harness type
	factEnvironment                 // the identifier of an environment
	factRunner                      // the name of a runner
	factAgent                       // the name of an agent
	factForeman                     // agentType of a foreman
	factSource                      // the provider of a trigger
	factPublic                      // the event of a trigger that anybody may cause
	factForge                       // the event of a trigger that asks the forge
	factAutomation                  // the name of an automation in the filter of a notification
)

func (f *fact) span() span {
	return span{int(f.line), int(f.col), int(f.endLine), int(f.endCol)}
}
