package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	writer "sigs.k8s.io/yaml"
)

// EditWebhookFile returns the text of a webhook's file, src, changed so that it
// says w. Keys that say it already, their order and all comments stay as they
// are; where that cannot be, and where src is nil, the file is written anew.
// What w says need not be valid: load the tree to know.
func EditWebhookFile(src []byte, w Webhook) ([]byte, error) {
	keys, err := webhookKeys(w)
	if err != nil {
		return nil, err
	}
	if text, ok := editKeys(src, keys); ok {
		return text, nil
	}

	text, err := json.Marshal(keys)
	if err == nil {
		text, err = writer.JSONToYAML(unprintable.ReplaceAllFunc(text, func(c []byte) []byte {
			r, _ := utf8.DecodeRune(c)
			return fmt.Appendf(nil, `\u%04x`, r)
		}))
	}

	if err != nil {
		return nil, fmt.Errorf("webhook %q: %w", w.Name, err)
	}

	return text, nil
}

// unprintable is what JSON may have as it is and YAML may not.
var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)

// webhookKeys returns what a webhook's file says, without keys that have their
// default.
func webhookKeys(w Webhook) (map[string]any, error) {
	keys, err := asKeys(w, "name", "path", "line", "signatureSchemeAlias")
	if err != nil {
		return nil, fmt.Errorf("webhook %q: %w", w.Name, err)
	}
	if w.SignatureSchemeAlias != "" {
		keys["signatureScheme"] = w.SignatureSchemeAlias
	}
	dropDefault(keys, "enabled", true)
	dropDefault(keys, "handshake", false)
	return keys, nil
}

// webhookDefault is what a webhook's file says by leaving a key out.
func webhookDefault(key string) any {
	switch key {
	case "authMode":
		return string(AuthToken)
	case "enabled":
		return true
	case "handshake":
		return false
	}
	return nil
}

// editKeys changes the keys at the root of src to want, and reports whether it
// could do so and leave the rest alone.
func editKeys(src []byte, want map[string]any) ([]byte, bool) {
	d := readKeys(src)
	if d.root == nil || d.root.Style&yaml.FlowStyle != 0 {
		return nil, false
	}

	var fixes []Fix
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		k, v := d.root.Content[i], d.root.Content[i+1]
		wanted := orDefault(want, k.Value)
		if reflect.DeepEqual(d.data[k.Value], wanted) {
			continue
		}

		start, end := d.extent(v)
		text, ok := scalarText(wanted)
		if wanted == nil {
			start, end = d.wholeLines(d.offset(k.Line, k.Column), end)
		} else if !ok || v.Kind != yaml.ScalarNode {
			return nil, false
		}

		fixes = append(fixes, Fix{Start: start, End: end, Text: text})
	}

	out := ApplyFixes(src, fixes)
	lineEnd := "\n"
	if bytes.Contains(src, []byte("\r\n")) {
		lineEnd = "\r\n"
	}

	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, there := d.data[key]; there || reflect.DeepEqual(want[key], webhookDefault(key)) {
			continue
		}

		text, ok := scalarText(want[key])
		if !ok {
			return nil, false
		}
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, lineEnd...)
		}

		out = append(out, strings.Repeat(" ", d.root.Column-1)+key+": "+text+lineEnd...)
	}

	return out, says(out, want)
}

func readKeys(src []byte) *document {
	d := &document{src: src}
	d.text = bytes.TrimPrefix(d.src, byteOrderMark)
	d.at = len(d.src) - len(d.text)
	d.parse()
	return d
}

// says reports whether a file has exactly the wanted keys.
func says(src []byte, want map[string]any) bool {
	d := readKeys(src)
	if d.root == nil || len(d.problems) > 0 {
		return false
	}

	for key := range d.data {
		if !reflect.DeepEqual(d.data[key], orDefault(want, key)) {
			return false
		}
	}

	for key := range want {
		if !reflect.DeepEqual(want[key], orDefault(d.data, key)) {
			return false
		}
	}

	return true
}

func orDefault(keys map[string]any, key string) any {
	if v, ok := keys[key]; ok {
		return v
	}
	return webhookDefault(key)
}

// wholeLines widens a part of the file to whole lines.
func (d *document) wholeLines(start, end int) (int, int) {
	start = bytes.LastIndexByte(d.src[:start], '\n') + 1
	if n := bytes.IndexByte(d.src[end:], '\n'); n >= 0 {
		return start, end + n + 1
	}
	return start, len(d.src)
}

// scalarText writes a scalar on one line; nil as nothing.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case bool:
		return fmt.Sprint(v), true
	case string:
		if plainScalar.MatchString(v) && !slices.Contains([]string{"true", "false", "null"}, strings.ToLower(v)) {
			return v, true
		}

		text, err := json.Marshal(v)
		return string(text), err == nil
	}

	return "", false
}
