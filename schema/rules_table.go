package schema

import "strings"

// rules holds every rule once, by its ID. It is read only.
var rules = [...]Rule{
	ruleMissingPath: {
		Code: "missing-path", Severity: SeverityError,
		Title: "a directory or main file is not there",
		Doc: "The definition's directory does not exist, or a directory of automations/, agents/ or " +
			"skills/ has files but lacks the main one. The latter is a warning. The program never takes a missing " +
			"root for an empty tree: that would delete every webhook.",
	},
	ruleUnsupportedPath: {
		Code: "unsupported-path", Severity: SeverityError,
		Title: "a file at a path that resembles a resource path",
		Doc: "The path resembles one that the program reads definitions from, but is not one. A checker that skips such files " +
			"reports a broken tree as clean. So such a file is an error, which names the right path; a JSON file, " +
			"which may be a sample, is a warning. README files, dot files and everything else outside the " +
			"tree's directories are ignored.",
	},
	ruleFlatAutomation: {
		Code: "flat-automation", Severity: SeverityWarning,
		Title: "an automation without a directory of its own",
		Doc: "The program reads automations/<name>.md like automations/<name>/automation.md. Move the file to the " +
			"latter path.",
	},
	ruleDuplicateName: {
		Code: "duplicate-name", Severity: SeverityError,
		Title: "two resources with one name",
		Doc: "Two resources of a kind have the same name, or names that differ only in case. Some file " +
			"systems and tools do not tell such names apart.",
	},
	ruleInvalidName: {
		Code: "invalid-name", Severity: SeverityError,
		Title: "a name that resources cannot have",
		Doc: "A resource takes its name from its path: 1 to 64 characters of a-z A-Z 0-9 . _ -, not " +
			"starting with a dot.",
	},
	ruleFileTooLarge: {
		Code: "file-too-large", Severity: SeverityError,
		Title: "a file over 256 KiB, or of too many values",
		Doc: "A definition file has at most 256 KiB, and its YAML at most 20,000 values. The rest of the " +
			"file is not checked.",
	},
	ruleTreeTooLarge: {
		Code: "tree-too-large", Severity: SeverityError,
		Title: "too many files, or too much in them",
		Doc: "A tree has at most 20,000 files at or near resource paths and 16 MiB in them; above " +
			"that, no other rule is checked. The agent's file and factory.yaml, counted once for each automation " +
			"that uses them, have at most 128 MiB together.",
	},
	ruleSymlink: {
		Code: "symlink", Severity: SeverityError,
		Title: "a symbolic link at a resource path",
		Doc: "Links are never followed, so that nothing outside the tree is ever read. Put the file itself " +
			"at the path.",
	},
	ruleUnreadable: {
		Code: "unreadable", Severity: SeverityError,
		Title: "a file or directory that cannot be read",
		Doc: "The system refused to open or read the file, or the file changed during the check. The check is " +
			"incomplete: it shows neither that the tree is valid nor that it is not. The server refuses a commit " +
			"with a directory that git itself would not make (an entry named .., two of one name, a file in the " +
			"place of a directory), or with a directory of more than 4 MiB.",
	},
	ruleNotUTF8: {
		Code: "not-utf8", Severity: SeverityError,
		Title: "a file in another encoding",
		Doc:   "Definition files are UTF-8. A byte-order mark at the start is accepted.",
	},
	ruleInvalidYAML: {
		Code: "invalid-yaml", Severity: SeverityError,
		Title: "text that is not valid YAML",
		Doc: "The YAML parser cannot read the text, or it holds characters that editors and readers of " +
			"YAML treat differently: tabs in the indentation, control characters, line separators other " +
			"than line feeds.",
	},
	ruleControlCharacter: {
		Code: "control-character", Severity: SeverityError,
		Title: "a control character in a text",
		Doc: "Texts hold no control characters (C0, DEL and C1), written as they are or as escapes such as " +
			"\"\\0\": databases, terminals and other programs refuse them or obey them. Prompts, " +
			"descriptions, commands and the values of a filter may have tabs and line breaks; names of " +
			"all kinds are one line.",
	},
	ruleMultipleDocuments: {
		Code: "multiple-documents", Severity: SeverityError,
		Title: "a second YAML document",
		Doc:   "A file holds one document. Many readers would silently use only the first.",
	},
	ruleDuplicateKey: {
		Code: "duplicate-key", Severity: SeverityError,
		Title: "a duplicate key",
		Doc:   "YAML readers differ in which of the two values they use.",
	},
	ruleYAMLAnchor: {
		Code: "yaml-anchor", Severity: SeverityError,
		Title: "an anchor, an alias or a merge key",
		Doc: "&name, *name and << make a file read differently from how it looks, and allow small files to " +
			"expand without bound.",
	},
	ruleYAMLTag: {
		Code: "yaml-tag", Severity: SeverityError,
		Title: "a tag",
		Doc:   "Tags such as !!str change what a value is. Quote a string instead.",
	},
	ruleYAMLKey: {
		Code: "yaml-key", Severity: SeverityError,
		Title: "a key that is not a string",
		Doc: "Keys are plain strings. A key cannot be a list, a mapping, a number, a boolean, a date or empty. " +
			"If a number is a name, put it in quotes.",
	},
	ruleFrontMatter: {
		Code: "front-matter", Severity: SeverityError,
		Title: "front matter that is missing, unclosed or in another format",
		Doc: "A Markdown definition opens with --- on its first line and closes its front matter with --- " +
			"on a line of its own, both at the start of the line. Anything else would silently become " +
			"part of the prompt.",
	},
	ruleEmptyPrompt: {
		Code: "empty-prompt", Severity: SeverityError,
		Title: "an automation without a prompt",
		Doc:   "The text below the front matter is the prompt of the runs. It must not be empty.",
	},
	ruleHiddenText: {
		Code: "hidden-text", Severity: SeverityWarning,
		Title: "text that readers do not see as an agent does",
		Doc: "A reviewer sees another text than the agent. The rule finds characters that change the order of " +
			"text (U+202A to U+202E, U+2066 to U+2069), invisible characters, prompts of invisible characters " +
			"only, and a second front matter block, which is part of the prompt and sets nothing.",
	},
	ruleUnknownKey: {
		Code: "unknown-key", Severity: SeverityError,
		Title: "a key that is not known",
		Doc: "Keys are case-sensitive. In factory.yaml, agents, runners and skills an unknown key is a " +
			"warning, so that a newer definition still applies; everywhere else it is an error.",
	},
	ruleMissingKey: {
		Code: "missing-key", Severity: SeverityError,
		Title: "a required key is missing",
		Doc:   "The key has no default.",
	},
	ruleTypeMismatch: {
		Code: "type-mismatch", Severity: SeverityError,
		Title: "a value of the wrong type",
		Doc: "The value does not have the type that the key takes, or YAML readers differ in its type. If you mean " +
			"a string, put 012, 1e3, true, null and dates in quotes. In YAML 1.2, yes, no, on and off are " +
			"strings.",
	},
	ruleInvalidValue: {
		Code: "invalid-value", Severity: SeverityError,
		Title: "a value that the key does not take",
		Doc:   "The value has the right type and is not among those allowed.",
	},
	ruleModelOrHarness: {
		Code: "model-or-harness", Severity: SeverityError,
		Title: "both model and harness, or neither",
		Doc: "model and harness are two ways to select what executes a run, so they exclude one another. " +
			"agentDefaults in factory.yaml needs one of them.",
	},
	ruleMCPServer: {
		Code: "mcp-server", Severity: SeverityWarning,
		Title: "an MCP server that no agent can reach",
		Doc: "Each server of mcpServers has exactly one of command, url and warp_id. A run goes on without a server " +
			"that has none, and reports it in config_not_applied.",
	},
	ruleAuthMode: {
		Code: "auth-mode", Severity: SeverityError,
		Title: "an unknown authentication mode",
		Doc:   "authMode is token (the default), url_token or signature.",
	},
	ruleSignatureScheme: {
		Code: "signature-scheme", Severity: SeverityError,
		Title: "a signature scheme that is unknown, missing or out of place",
		Doc: "signatureScheme is required with authMode: signature and refused otherwise. It is a scheme's " +
			"key or alias, or custom.",
	},
	ruleCustomScheme: {
		Code: "custom-scheme", Severity: SeverityError,
		Title: "a custom scheme that is missing, out of place or unsafe",
		Doc: "customScheme is required with signatureScheme: custom and refused otherwise. {body} must be " +
			"in the template, and so must a timestamp that is checked, because an attacker can change every part " +
			"of a request that is not signed. {id} needs a separator: directly beside another placeholder, an " +
			"attacker could move bytes between the two without changing the signature.",
	},
	ruleHandshake: {
		Code: "handshake", Severity: SeverityError,
		Title: "a handshake that the scheme does not have",
		Doc:   "handshake: true answers the provider's verified set-up probes. Only some schemes have them.",
	},
	ruleRegister: {
		Code: "register", Severity: SeverityError,
		Title: "a registration that does not fit its webhook or forge",
		Doc: "register makes the webhook at a forge. It needs authMode: signature with the signatureScheme of " +
			"that forge. Only repositories of GitLab have more than one slash, and GitLab has events of its " +
			"own: " + strings.Join(gitLabEvents, ", ") + ".",
	},
	ruleSecretName: {
		Code: "secret-name", Severity: SeverityError,
		Title: "a name that secrets cannot have",
		Doc: "A secret's name is a letter or an underscore, then up to 127 letters, digits or underscores. " +
			"The name stands in the file, never the value.",
	},
	ruleSealedForm: {
		Code: "secret-file", Severity: SeverityError,
		Title: "a file of secrets/ that holds no sealed secret",
		Doc: "secrets/<NAME>.age is a file of age, binary or with ASCII armor, of at most 128 KiB, that " +
			"millwright secret seal writes. A tree has at most 100. Everybody who can read the repository " +
			"knows a value that was committed unencrypted: replace it at the service that uses it.",
	},
	ruleDeliveryIDHeader: {
		Code: "delivery-id-header", Severity: SeverityError,
		Title: "a header that cannot name a delivery",
		Doc: "deliveryIdHeader is the name of an HTTP header in which the sender puts its own event ID. " +
			"Headers that carry credentials or signatures are refused, since the server logs the ID of a " +
			"delivery.",
	},
	ruleDeliveryIDShared: {
		Code: "delivery-id-shared", Severity: SeverityWarning,
		Title: "a header that does not tell deliveries apart",
		Doc: "deliveryIdHeader names a header that is the same for many deliveries, such as User-Agent or " +
			"the event's kind, or one that belongs to the connection. Of deliveries with the same value " +
			"the first starts runs, and the others count as duplicates and start nothing.",
	},
	ruleWebhookLimit: {
		Code: "webhook-limit", Severity: SeverityError,
		Title: "more than 20 webhooks",
		Doc: "A factory has at most 20 webhooks. The problem is at the file that is 21st in the order of " +
			"names.",
	},
	ruleWebhookIDs: {
		Code: "webhook-ids", Severity: SeverityError,
		Title: "webhook_ids without a valid UID",
		Doc: "filter.webhook_ids is a non-empty list of webhook UIDs: wh_ and 26 characters of " +
			"0123456789abcdefghjkmnpqrstvwxyz, the first 0 to 7. The name of a webhook's file is not its " +
			"UID. With --server, the problem shows the UID. millwright webhook uids --write puts it into the file.",
	},
	ruleTrigger: {
		Code: "trigger", Severity: SeverityError,
		Title: "a trigger that is incomplete or contradictory",
		Doc: "An automation has at least one trigger. provider: webhook goes with event: received, " +
			"provider: schedule with event: cron_fired and a schedule. The events of providers are in " +
			"docs/triggers.md.",
	},
	ruleTriggerNotFired: {
		Code: "trigger-not-fired", Severity: SeverityInfo,
		Title: "a trigger of another provider",
		Doc: "Triggers of providers and events that this server does not fire are accepted, so that a " +
			"definition written for a hosted service validates and applies unchanged.",
	},
	ruleTriggerNoSource: {
		Code: "trigger-no-source", Severity: SeverityWarning,
		Title: "a trigger of a provider without a webhook that receives its events",
		Doc: "The events of GitHub, GitLab, Linear, Jira and Slack come from the webhooks of the tree whose " +
			"signatureScheme is the provider's. Without one, the provider's triggers never fire. Each " +
			"provider is reported once. --strict lets this warning pass, since definitions of a hosted " +
			"service have no such webhook.",
	},
	ruleTriggerNoForge: {
		Code: "trigger-no-forge", Severity: SeverityWarning, NeedsState: true,
		Title: "a trigger that asks a forge which the server does not have",
		Doc: "The payload of a pull request has no list of its files, and a note of GitLab does not name " +
			"the account of the server. For paths of pull requests, and for bot_mentioned without mentioned, the " +
			"server asks the forge that sent the delivery. Without a forge of that kind in its settings, such a " +
			"trigger never matches.",
	},
	ruleTriggerAnybody: {
		Code: "trigger-anybody", Severity: SeverityWarning,
		Title: "an automation with secrets or outputs that anybody can start",
		Doc: "Whoever may comment on an issue or review a pull request can start such a run, and writes what it " +
			"reads. Name the accounts that may start it in authors, or their relation to the repository in " +
			"author_associations, such as OWNER, MEMBER and COLLABORATOR.",
	},
	ruleSchedule: {
		Code: "schedule", Severity: SeverityError,
		Title: "a schedule that cannot be read or never comes",
		Doc: "schedule.cron is five fields (minute, hour, day of the month, month, day of the week) or " +
			"@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or @every and a duration. " +
			"Times are always UTC.",
	},
	ruleOutputs: {
		Code: "outputs", Severity: SeverityError,
		Title: "an output that this server cannot perform",
		Doc: "outputs of an automation lists the outputs that its runs may have. A branch is a folder and a name with " +
			"{run}, so that no two runs share one; a review never approves; protected paths are relative " +
			"to the root of the repository.",
	},
	ruleNotification: {
		Code: "notification", Severity: SeverityError,
		Title: "a notification that cannot be sent",
		Doc: "A notification has either url or urlSecretName. url begins with https:// (or http:// for an address " +
			"that outbound.allow of the server's settings lists) and holds no credential: the URL of an incoming " +
			"webhook of Slack is one, and belongs in a team secret. With format: standard, secretName names the " +
			"secret that signs the events. A factory has at most 20 notifications.",
	},
	ruleNotificationNever: {
		Code: "notification-never", Severity: SeverityWarning,
		Title: "a notification that is never sent",
		Doc: "filter.state narrows the events of runs: run.failed passes FAILED alone. When no event of the list " +
			"passes the filter, the notification is never sent.",
	},
	ruleFilter: {
		Code: "filter", Severity: SeverityError,
		Title: "a payload filter that is not valid",
		Doc: "filter.payload mirrors the body: a field takes a list of allowed values, an object of the " +
			"operators in, not_in and exists, or a nested object. At most 10 levels, 64 fields with " +
			"operators and 32 values in a set. In the filter of a provider's event, each key takes a list of " +
			"at most 100 values, or in and not_in.",
	},
	ruleFilterOperator: {
		Code: "filter-operator", Severity: SeverityWarning,
		Title: "a field of a filter that reads like an operator",
		Doc: "The operators are in, not_in and exists. Any other word is the name of a field, so the " +
			"filter would look for notIn, $in or one_of in the body. If the body has such a field, ignore the " +
			"warning.",
	},
	ruleFilterValue: {
		Code: "filter-value", Severity: SeverityWarning,
		Title: "a value of a filter that matches nothing",
		Doc: "Conclusions, states of reviews, relations of authors and actions are words of the provider. " +
			"No event has another word, so a filter with one matches nothing. Repositories and branches are compared as they " +
			"are: release/* is the name of no branch. Only paths takes patterns, with *, ? and **; a leading ! " +
			"and alternatives in braces stand for themselves there.",
	},
	ruleFilterNoValue: {
		Code: "filter-no-value", Severity: SeverityWarning,
		Title: "a filter key that no payload has a value for",
		Doc: "The payload of a check has no labels, that of a reaction no text, and that of a comment of Linear " +
			"has of its issue neither labels, project nor state. A trigger that filters by them never matches.",
	},
	ruleFilterHeaders: {
		Code: "filter-headers", Severity: SeverityError,
		Title: "a filter of headers that is not valid",
		Doc: "filter.headers of a webhook trigger names headers of the request, in any case, each with a " +
			"list of allowed values or an object of the operators in and not_in. Headers with credentials " +
			"and signatures are refused. At most 10 headers with 32 values each.",
	},
	ruleFlow: {
		Code: "flow", Severity: SeverityError,
		Title: "concurrency, debounce, conversation or retry that is not valid",
		Doc: "concurrency, debounce, conversation and retry control how the runs of an automation wait for one " +
			"another. A key is up to 8 paths into the payload, limit 1 to 1000, wait 1s to 1h, max up to " +
			"24h and no shorter than wait, attempts 2 to 5, backoff 1m to 24h.",
	},
	ruleMoreProblems: {
		Code: "more-problems", Severity: SeverityError,
		Title: "a file with too many problems to show",
		Doc: "At most 100 problems are shown of one file, fewer when the whole tree is full of them. The " +
			"rest are counted.",
	},
	ruleReference: {
		Code: "reference", Severity: SeverityError,
		Title: "a name that is not in the tree",
		Doc:   "agent and runner name resources of the same tree.",
	},
	ruleForeman: {
		Code: "foreman", Severity: SeverityError,
		Title: "no foreman, or more than one",
		Doc: "At most one agent has agentType: FOREMAN (or MAIN). With a factory.yaml there is exactly " +
			"one.",
	},
	ruleSecretMissing: {
		Code: "secret-missing", Severity: SeverityError, NeedsState: true,
		Title: "a team secret that does not exist",
		Doc: "secretName names a team secret that must exist before the definition is applied. A secret " +
			"whose value the provider has yet to issue exists too: millwright secret set --pending.",
	},
	ruleSecretNotURLSafe: {
		Code: "secret-not-url-safe", Severity: SeverityError, NeedsState: true,
		Title: "a secret that cannot be part of a URL",
		Doc: "With authMode: url_token the secret's value is a segment of the webhook's URL: letters, " +
			"digits, -, ., _ and ~ only, and neither . nor .. alone.",
	},
	ruleSecretNotVisible: {
		Code: "secret-not-visible", Severity: SeverityWarning, NeedsState: true,
		Title: "a bearer token beyond visible ASCII",
		Doc: "With authMode: token the secret's value is sent in a header. Many senders cannot put blanks " +
			"or other characters there.",
	},
	ruleSecretNotGranted: {
		Code: "secret-not-granted", Severity: SeverityError, NeedsState: true,
		Title: "a secret for runs that does not exist",
		Doc: "secrets names team secrets that the harness gets as environment variables, and " +
			"${secret:NAME} in env and headers of mcpServers names those that an MCP server gets. A run " +
			"that needs a secret that does not exist ends as ERROR.",
	},
	ruleSecretReserved: {
		Code: "secret-reserved", Severity: SeverityError, NeedsState: true,
		Title: "a secret that the server itself uses",
		Doc: "The source of a factory or a forge uses this secret (tokenSecret, sshKeySecret, pushSecret or " +
			"privateKeySecret in the settings), so no webhook or run may have it. Make another secret for " +
			"them. sharedSecrets in the settings names the exceptions.",
	},
	ruleSealedTaken: {
		Code: "secret-file-taken", Severity: SeverityError, NeedsState: true,
		Title: "a sealed secret whose name is taken",
		Doc: "A new file of secrets/ may not have the name of a team secret, and none that of a secret that the " +
			"server's settings use. If a team secret gets the name later, the factory continues to use its " +
			"own secret.",
	},
	ruleSealedOpen: {
		Code: "secret-file-unreadable", Severity: SeverityError, NeedsState: true,
		Title: "a sealed secret that does not open",
		Doc: "The file is encrypted to another recipient than the factory's, was changed, or was sealed for " +
			"another factory or under another name: a file opens only in the factory and under the name for which " +
			"it was sealed. Checks without the server, and checks of pull requests from forks or in public " +
			"repositories, do not open files.",
	},
	RuleWebhookUnknown: {
		Code: "webhook-unknown", Severity: SeverityWarning, NeedsState: true,
		Title: "a UID that no webhook of the factory has",
		Doc: "The UID has the right form, but no webhook of this factory has it, and no planned one would get it. " +
			"The automation stays visible, and this UID starts nothing.",
	},
	RuleWebhookRenamed: {
		Code: "webhook-renamed", Severity: SeverityError, NeedsState: true,
		Title: "a webhook's file was renamed",
		Doc: "One apply removes a webhook's file and adds one with the same content under another name. " +
			"The new file would get a new URL, and the old URL, which the sender uses, would answer 404. Files " +
			"with different content count as a rename too if both name a secret that no other webhook uses. Add " +
			"the new file first, move the sender, then delete the old file. To rename all the same, run " +
			"millwright sync --allow-rename, or set allowRename: true in the source's settings.",
	},
	RulePruneGuard: {
		Code: "prune-guard", Severity: SeverityError, NeedsState: true,
		Title: "an apply that would delete most webhooks",
		Doc: "An apply that would delete every webhook of a factory that has two or more, or more than " +
			"half when it has four or more, is refused: a wrong branch or an empty checkout must not delete " +
			"every URL. To delete them all the same, run millwright sync --allow-prune, or set allowPrune: true beside " +
			"the source in the settings.",
	},
	RuleWebhookLast: {
		Code: "webhook-last", Severity: SeverityWarning, NeedsState: true,
		Title: "a factory's only webhook would be deleted",
		Doc: "An apply would delete the only webhook of a factory, which accepted deliveries within the " +
			"last 7 days. Often somebody has only moved its file. If a file of the same name returns " +
			"within 30 days, it is the same webhook, with its old URL.",
	},
	RuleSenderContract: {
		Code: "sender-contract", Severity: SeverityWarning, NeedsState: true,
		Title: "a webhook whose sender must change too",
		Doc: "authMode, signatureScheme or customScheme of a webhook that exists has changed. The change is " +
			"applied, and from then on the answer to deliveries in the old form is 401. Change the sender at the same " +
			"time; for a change without a gap, add a second webhook, move the sender, and delete the " +
			"first.",
	},
	RuleDeliveriesLimit: {
		Code: "deliveries-limit", Severity: SeverityError, NeedsState: true,
		Title: "more deliveries a minute than the server allows",
		Doc: "deliveriesPerMinute of a webhook is at most limits.maxDeliveriesPerMinute of the server's " +
			"settings, 600 by default.",
	},
	RuleCommitSignature: {
		Code: "commit-signature", Severity: SeverityError,
		Title: "a commit that no trusted key has signed",
		Doc: "Only the server checks this rule. The settings of the git source have verify, and none of its keys " +
			"has signed the commit. The server reads no file of the commit. Sign it (git commit --amend -S), or add the key of its signer to " +
			"the file of verify and reload the settings.",
	},
	ruleHarnessUnknown: {
		Code: "harness-unknown", Severity: SeverityWarning, NeedsState: true,
		Title: "a harness that the server does not have",
		Doc: "harness.type names a harness of the server's settings. Runs with another harness cannot " +
			"start.",
	},
	ruleNotHosted: {
		Code: "not-hosted", Severity: SeverityWarning,
		Title: "a key that the hosted service does not have",
		Doc: "Only millwright validate --hosted checks this rule. The definition applies here; the hosted " +
			"service with the same format refuses the file, key or value. The column hosted of " +
			"docs/definitions.md marks these keys.",
	},
}
