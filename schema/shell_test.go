package schema_test

import (
	"os/exec"
	"testing"

	"millwright/schema"
)

// TestShellWord has a shell say what it takes each word for.
func TestShellWord(t *testing.T) {
	words := []string{
		"", "plain", "a b", "it's", "''", "`id`", "$(id)", "$HOME", "${x:-y}", "\\", "a\\'b", "\"", "!!", "*", "~", "~root/x",
		"#", "a#b", "a;b", "a&b", "a|b", "<x>", "[a]", "{a,b}", "line\nline", "\ttab", "é 😀", "-n", "x=y", "%s", "Authorization: Bearer 'x'",
		"https://x.example/webhooks/w/wh_1?a=1&b=`id`", `{"a": "it's $(id)"}`,
	}
	for _, word := range words {
		out, err := exec.Command("sh", "-c", "printf '%s|' before "+schema.ShellWord(word)+" after").CombinedOutput()
		if err != nil || string(out) != "before|"+word+"|after|" {
			t.Errorf("%q as %s: %q, %v", word, schema.ShellWord(word), out, err)
		}
	}
	for _, plain := range []string{"plain", "-n", "./factory", "https://x.example:8080/webhooks/w/wh_1", "x=y"} {
		if got := schema.ShellWord(plain); got != plain {
			t.Errorf("%s is quoted as %s", plain, got)
		}
	}
}
