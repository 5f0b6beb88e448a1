package schema

import (
	"fmt"
	"path"
)

// RewriteWebhookIDs replaces entries of webhook_ids in an automation's file,
// src, and leaves every other byte as it is. ids gives the new UID for a
// webhook's file name (as in webhooks/<name>.yaml, written with or without the
// directory and the ending) or for a UID that stands there now; entries it does
// not have stay. A file that would not be better than before is returned
// unchanged, with an error, and so is one that cannot be read. The error names
// filePath.
func RewriteWebhookIDs(src []byte, filePath string, ids map[string]string) ([]byte, error) {
	d := &document{path: filePath, src: src}
	e := entry{path: filePath, kind: kindAutomation, name: stem(path.Base(filePath))}
	d.resource(e)
	if d.data == nil {
		d.diagnose(diagnosisBudget)
		for _, p := range d.problems {
			return src, fmt.Errorf("%s:%d:%d: %s", clean(p.Path), p.Line, p.Column, clean(p.Message))
		}

		return src, fmt.Errorf("%s: cannot be read", clean(filePath))
	}

	names := &Factory{webhookNames: sortedKeys(ids)}
	var fixes []Fix
	for i := range d.facts {
		f := &d.facts[i]
		if f.kind != factWebhookID {
			continue
		}

		uid, ok := ids[f.value]
		if name, isName := names.webhookFile(f.value); !ok && isName {
			uid, ok = ids[name], true
		}
		if ok && uid != f.value {
			fix := f.fix(uid)
			if fix == nil {
				return src, fmt.Errorf("%s:%d:%d: this entry of webhook_ids stands on several lines: write it on one",
					clean(filePath), f.line, f.col)
			}

			fixes = append(fixes, *fix)
		}
	}

	out := ApplyFixes(src, fixes)
	if len(fixes) > 0 && !better(filePath, src, out) {
		return src, fmt.Errorf("%s: the UIDs cannot be put in without damage: write them by hand", clean(filePath))
	}

	return out, nil
}
