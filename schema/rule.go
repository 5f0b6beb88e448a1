package schema

// Rule is one thing that Load checks. Its code never changes once it has shipped.
type Rule struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"` // the greatest its problems have
	Title    string   `json:"title"`    // what is wrong, in a few words
	// NeedsState is set for rules that run only with what is Known.
	NeedsState bool   `json:"needs_state"`
	Doc        string `json:"doc"` // why it is a rule, and how to mend it
}

// RuleID names a rule to the code that checks it. The zero value names none.
type RuleID uint8

// The rules, in the order of the documentation.
const (
	_ RuleID = iota
	ruleMissingPath
	ruleUnsupportedPath
	ruleFlatAutomation
	ruleDuplicateName
	ruleInvalidName
	ruleFileTooLarge
	ruleTreeTooLarge
	ruleSymlink
	ruleUnreadable
	ruleNotUTF8
	ruleInvalidYAML
	ruleControlCharacter
	ruleMultipleDocuments
	ruleDuplicateKey
	ruleYAMLAnchor
	ruleYAMLTag
	ruleYAMLKey
	ruleFrontMatter
	ruleEmptyPrompt
	ruleHiddenText
	ruleUnknownKey
	ruleMissingKey
	ruleTypeMismatch
	ruleInvalidValue
	ruleModelOrHarness
	ruleMCPServer
	ruleAuthMode
	ruleSignatureScheme
	ruleCustomScheme
	ruleHandshake
	ruleRegister
	ruleSecretName
	ruleSealedForm
	ruleDeliveryIDHeader
	ruleDeliveryIDShared
	ruleWebhookLimit
	ruleWebhookIDs
	ruleTrigger
	ruleTriggerNotFired
	ruleTriggerNoSource
	ruleTriggerNoForge
	ruleTriggerAnybody
	ruleSchedule
	ruleOutputs
	ruleNotification
	ruleNotificationNever
	ruleFilter
	ruleFilterOperator
	ruleFilterValue
	ruleFilterNoValue
	ruleFilterHeaders
	ruleFlow
	ruleMoreProblems
	ruleReference
	ruleForeman
	ruleSecretMissing
	ruleSecretNotURLSafe
	ruleSecretNotVisible
	ruleSecretNotGranted
	ruleSecretReserved
	ruleSealedTaken
	ruleSealedOpen
	RuleWebhookUnknown
	RuleWebhookRenamed
	RulePruneGuard
	RuleWebhookLast
	RuleSenderContract
	RuleDeliveriesLimit
	RuleCommitSignature
	ruleHarnessUnknown
	ruleNotHosted
)
