package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/tidwall/gjson"

	"millwright/state"
)

// Bounds of a comparison.
const (
	maxFields   = 200  // that differ
	maxElements = 5000 // of an array that are looked at
)

// compareView is two deliveries side by side.
type compareView struct {
	Asked  [2]string
	Wrong  string
	Sides  []comparedDelivery // two, or none
	Fields []changedField
	More   bool // there may be more that differ
	Text   *fileDiff
}

// comparedDelivery is one of two deliveries.
type comparedDelivery struct {
	deliveryRow
	Kept bool
	body []byte
}

// changedField is a field of the payloads that differs. A side is JSON, and empty without the field.
type changedField struct{ Path, Left, Right string }

// compare shows how the payloads of two deliveries differ.
func (q *request) compare() error {
	p, f, err := q.factoryPage("Compare", "deliveries")
	if err != nil {
		return err
	}

	var v compareView
	asked := make([]string, 0, 3)
	for _, uid := range q.URL.Query()["delivery"] {
		if uid != "" && len(asked) < cap(asked) {
			asked = append(asked, clip(64, uid))
		}
	}
	copy(v.Asked[:], asked)

	status := http.StatusOK
	switch {
	case len(asked) > 2:
		v.Wrong, status = "Select two deliveries: there are more.", http.StatusUnprocessableEntity
	case len(asked) == 2 && asked[0] == asked[1]:
		v.Wrong, status = "Both are the same delivery.", http.StatusUnprocessableEntity
	case len(asked) == 2:
		if err := q.compareTwo(&v, f, asked); err != nil {
			return err
		}
	}

	p.Data = v
	return q.renderStatus(status, "compare", p)
}

// compareTwo fills in the comparison of two deliveries, the older one on the left.
func (q *request) compareTwo(v *compareView, f state.Factory, uids []string) error {
	rows, err := q.selectedRows(f, uids)
	if err != nil {
		return err
	}

	for _, row := range rows {
		side := comparedDelivery{deliveryRow: row}
		side.body, err = q.Store.Payload(q.Context(), f.UID, row.UID)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		side.Kept = err == nil
		v.Sides = append(v.Sides, side)
	}

	left, right := v.Sides[0], v.Sides[1]
	if left.Kept && right.Kept {
		c := comparison{}
		c.values("", gjson.ParseBytes(left.body), gjson.ParseBytes(right.body), 0)
		v.Fields, v.More = c.fields, c.full || c.cut
		v.Text = besides(left.body, right.body)
	}
	return nil
}

// besides returns the differing lines of two payloads, pretty-printed; nil if there is none.
func besides(left, right []byte) *fileDiff {
	text := diff.Diff("a", []byte(pretty(left)+"\n"), "b", []byte(pretty(right)+"\n"))
	files, _, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil || len(files) != 1 {
		return nil
	}

	most := maxDiffLines
	d := diffOf(files[0], &most)
	return &d
}

// comparison gathers the fields of two JSON values that differ.
type comparison struct {
	fields []changedField
	full   bool // there are more
	cut    bool // not all elements were looked at
}

func (c *comparison) values(path string, left, right gjson.Result, depth int) {
	switch {
	case c.full || left.Raw == right.Raw:
	case left.Type == gjson.String && right.Type == gjson.String && left.Str == right.Str:
	case depth < maxDepth && left.IsObject() && right.IsObject():
		c.members(path, left, right, depth)
	case depth < maxDepth && left.IsArray() && right.IsArray():
		c.elements(path, left, right, depth)
	default:
		c.add(path, left, right)
	}
}

func (c *comparison) add(path string, left, right gjson.Result) {
	if len(c.fields) == maxFields {
		c.full = true
		return
	}
	c.fields = append(c.fields, changedField{path, clip(maxLine, left.Raw), clip(maxLine, right.Raw)})
}

func (c *comparison) members(path string, left, right gjson.Result, depth int) {
	was, now := membersOf(left), membersOf(right)
	seen := map[string]bool{}
	visit := func(key, _ gjson.Result) bool {
		if !seen[key.Str] {
			seen[key.Str] = true
			c.values(memberPath(path, key.Str), was[key.Str], now[key.Str], depth+1)
		}
		return !c.full
	}

	left.ForEach(visit)
	right.ForEach(visit)
}

func membersOf(object gjson.Result) map[string]gjson.Result {
	all := map[string]gjson.Result{}
	object.ForEach(func(key, value gjson.Result) bool {
		all[key.Str] = value
		return true
	})
	return all
}

func (c *comparison) elements(path string, left, right gjson.Result, depth int) {
	was, now := c.elementsOf(left), c.elementsOf(right)
	for i := range max(len(was), len(now)) {
		var one, other gjson.Result
		if i < len(was) {
			one = was[i]
		}
		if i < len(now) {
			other = now[i]
		}
		c.values(fmt.Sprintf("%s[%d]", path, i), one, other, depth+1)
	}
}

func (c *comparison) elementsOf(array gjson.Result) (all []gjson.Result) {
	array.ForEach(func(_, value gjson.Result) bool {
		if len(all) == maxElements {
			c.cut = true
			return false
		}
		all = append(all, value)
		return true
	})
	return all
}

// plainMember is the key of a member that a path names without quotes.
var plainMember = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func memberPath(path, key string) string {
	switch {
	case !plainMember.MatchString(key):
		return path + "[" + strconv.Quote(clip(maxLine, key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}
