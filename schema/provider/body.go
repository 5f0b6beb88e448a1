package provider

import (
	"strings"

	"github.com/tidwall/gjson"
)

// body is a payload, with the values that were read from it. Of a repeated key the last value counts.
type body struct {
	event string // the event that the delivery's header names
	text  string
	seen  []place // one for each path that a table names
	top   []place // the members of the payload, unless they are many
	many  bool    // the members are read for each path
}

type place struct {
	path  string
	value gjson.Result
}

// at returns the value at a path of keys, joined by dots; the zero Result is none. "" is the payload itself.
func (b *body) at(path string) gjson.Result {
	for i := range b.seen {
		if b.seen[i].path == path {
			return b.seen[i].value
		}
	}

	var v gjson.Result
	if path == "" {
		v = gjson.Parse(b.text)
	} else {
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			v = b.member(path)
		} else {
			v = member(b.at(path[:dot]), path[dot+1:])
		}
	}

	b.seen = append(b.seen, place{path, v})
	return v
}

// maxTop bounds the members of a payload that are read once for all paths.
const maxTop = 64

// member returns the last member of the payload with a key; the zero Result without one.
func (b *body) member(key string) gjson.Result {
	if b.top == nil && !b.many {
		b.top = []place{}
		if root := b.at(""); root.IsObject() {
			root.ForEach(func(k, v gjson.Result) bool {
				b.top = append(b.top, place{k.Str, v})
				b.many = len(b.top) > maxTop
				return !b.many
			})
		}
	}

	if b.many {
		return member(b.at(""), key)
	}

	for i := len(b.top) - 1; i >= 0; i-- {
		if b.top[i].path == key {
			return b.top[i].value
		}
	}

	return gjson.Result{}
}

// member returns the last member of an object with a key; the zero Result without one.
func member(object gjson.Result, key string) (found gjson.Result) {
	if !object.IsObject() {
		return found
	}
	object.ForEach(func(k, v gjson.Result) bool {
		if k.Str == key {
			found = v
		}
		return true
	})
	return found
}

// string returns the string at a path; "" for what is none.
func (b *body) string(path string) string {
	if v := b.at(path); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// object reports whether the value at a path is an object.
func (b *body) object(path string) bool { return b.at(path).IsObject() }

// list reports whether the value at a path is a list.
func (b *body) list(path string) bool { return b.at(path).IsArray() }

// scalar returns a string, or a number as it is written; "" for everything else.
func scalar(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Number:
		return v.Raw
	}
	return ""
}

// one yields the strings and numbers at the paths.
func one(paths ...string) reader {
	return func(b *body, yield func(string) bool) {
		for _, path := range paths {
			if text := scalar(b.at(path)); text != "" && !yield(text) {
				return
			}
		}
	}
}

// each yields a field of each object in the list at a path, and each string and number of the list if there is
// no field to read.
func each(list string, fields ...string) reader {
	return func(b *body, yield func(string) bool) {
		all := b.at(list)
		if !all.IsArray() {
			return
		}

		all.ForEach(func(_, v gjson.Result) bool {
			if len(fields) == 0 {
				text := scalar(v)
				return text == "" || yield(text)
			}

			for _, field := range fields {
				if text := scalar(member(v, field)); text != "" && !yield(text) {
					return false
				}
			}

			return true
		})
	}
}

// eachObject visits the objects of the list at a path, until visit returns false.
func eachObject(b *body, list string, visit func(object *body) bool) {
	objects := b.at(list)
	if !objects.IsArray() {
		return
	}
	objects.ForEach(func(_, v gjson.Result) bool {
		return !v.IsObject() || visit(&body{seen: []place{{"", v}}, many: true})
	})
}

// first yields what the first reader that has a value yields.
func first(readers ...reader) reader {
	return func(b *body, yield func(string) bool) {
		for _, read := range readers {
			found := false
			read(b, func(text string) bool {
				found = true
				return yield(text)
			})
			if found {
				return
			}
		}
	}
}

// all yields what each of the readers yields.
func all(readers ...reader) reader {
	return func(b *body, yield func(string) bool) {
		more := true
		for _, read := range readers {
			if !more {
				return
			}
			read(b, func(text string) bool {
				more = yield(text)
				return more
			})
		}
	}
}

// any reports whether a reader yields a value.
func (b *body) any(read reader) (found bool) {
	read(b, func(string) bool {
		found = true
		return false
	})
	return found
}
