package provider

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxMembers bounds the members of an object that are listed.
const maxMembers = 64

// at returns the value at a path of keys, joined by dots; the zero Result is none. "" is the payload itself.
// Of a repeated key the last value counts.
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
		parent, key := "", path
		if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
			parent, key = path[:dot], path[dot+1:]
		}
		v = b.member(parent, key)
	}

	if b.seen == nil {
		b.seen = make([]place, 0, 16)
	}
	b.seen = append(b.seen, place{path, v})
	return v
}

// member returns the last member with a key of the object at a path; the zero Result without one.
func (b *body) member(path, key string) gjson.Result {
	all, listed := b.members(path)
	if !listed {
		return memberOf(b.at(path), key)
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].is(key) {
			return gjson.Parse(all[i].value)
		}
	}
	return gjson.Result{}
}

// members returns the members of the object at a path. It lists those of the payload itself, and those of an
// object that is asked for a second one. listed is false for others.
func (b *body) members(path string) (all []member, listed bool) {
	if b.once {
		return nil, false
	}

	value := b.at(path)
	i := slices.IndexFunc(b.objects, func(o object) bool { return o.path == path })
	if i < 0 {
		i = len(b.objects)
		b.objects = append(b.objects, object{path: path})
		if path != "" {
			return nil, false
		}
	}

	o := &b.objects[i]
	if o.members == nil {
		o.list(value)
	}
	return o.members, !o.many
}

// list lists the members of an object, unless they are many.
func (o *object) list(value gjson.Result) {
	o.members = make([]member, 0, 16)
	if !value.IsObject() {
		return
	}

	for walk := (walker{text: value.Raw}); !o.many; {
		m, more := walk.next()
		if !more {
			return
		}
		o.members = append(o.members, m)
		o.many = len(o.members) > maxMembers
	}
}

// memberOf returns the last member of an object with a key; the zero Result without one.
func memberOf(object gjson.Result, key string) gjson.Result {
	if !object.IsObject() {
		return gjson.Result{}
	}

	found := ""
	for walk := (walker{text: object.Raw}); ; {
		m, more := walk.next()
		if !more {
			break
		}
		if m.is(key) {
			found = m.value
		}
	}

	return gjson.Parse(found)
}

// maxValues bounds the values of a key that are read once for all conditions.
const maxValues = 16

// valuesOf returns what the payload has for a key.
func (b *body) valuesOf(k *key) values {
	for i := range b.values {
		if b.values[i].key == k {
			return b.values[i]
		}
	}

	v := values{key: k}
	k.read(b, func(text string) bool {
		v.texts = append(v.texts, k.compare.form(text))
		v.many = len(v.texts) > maxValues
		return !v.many
	})
	b.values = append(b.values, v)
	return v
}

// string returns the string at a path; "" for what is none.
func (b *body) string(path string) string {
	if v := b.at(path); v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// has reports whether the value at a path is an object.
func (b *body) has(path string) bool { return b.at(path).IsObject() }

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
				if text := scalar(memberOf(v, field)); text != "" && !yield(text) {
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
		return !v.IsObject() || visit(&body{seen: []place{{"", v}}, once: true})
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
