package provider

import "strings"

// glob is a pattern of paths. * stands for any characters but /, ? for one of them, ** for any characters, and
// **/ for any directories or none. A pattern that ends in / stands for all below it.
type glob []token

type token struct {
	kind    tokenKind
	literal byte
}

type tokenKind uint8

const (
	literal     tokenKind = iota
	oneOf                 // ?
	some                  // *
	anything              // **
	directories           // **/: a directory of any depth, or none
	below                 // within directories
)

// maxPath bounds the length of paths that globs are compared with. No file system has longer ones.
const maxPath = 4096

func compileGlob(text string) (g glob) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "./"), "/")
	if strings.HasSuffix(text, "/") {
		text += "**"
	}

	for i := 0; i < len(text); i++ {
		stars := 0
		for i+stars < len(text) && text[i+stars] == '*' {
			stars++
		}

		begins := i == 0 || text[i-1] == '/'
		switch {
		case stars > 1 && begins && i+stars < len(text) && text[i+stars] == '/':
			g = append(g, token{kind: directories}, token{kind: below})
			i += stars
		case stars > 1:
			g = append(g, token{kind: anything})
			i += stars - 1
		case stars == 1:
			g = append(g, token{kind: some})
		case text[i] == '?':
			g = append(g, token{kind: oneOf})
		default:
			g = append(g, token{literal, text[i]})
		}
	}

	return g
}

// match reports whether a path matches. Its time is bounded by the product of both lengths.
func (g glob) match(path string) bool {
	if len(path) > maxPath {
		return false
	}

	now, next := make([]bool, len(g)+1), make([]bool, len(g)+1)
	g.enter(now, 0)
	for i := range len(path) {
		clear(next)
		alive := false
		for at, on := range now[:len(g)] {
			if on {
				alive = true
				g.step(next, at, path[i])
			}
		}

		if !alive {
			return false
		}

		now, next = next, now
	}

	return now[len(g)]
}

// enter adds a position, and those that follow it without a character.
func (g glob) enter(set []bool, at int) {
	set[at] = true
	if at == len(g) {
		return
	}

	switch g[at].kind {
	case some, anything:
		g.enter(set, at+1)
	case directories:
		set[at+1] = true
		g.enter(set, at+2)
	}
}

// step adds the positions that follow a position by a character.
func (g glob) step(set []bool, at int, c byte) {
	switch t := g[at]; t.kind {
	case literal:
		if c == t.literal {
			g.enter(set, at+1)
		}
	case oneOf:
		if c != '/' {
			g.enter(set, at+1)
		}
	case some:
		if c != '/' {
			g.enter(set, at)
		}
	case anything:
		g.enter(set, at)
	case below:
		set[at] = true
		if c == '/' {
			g.enter(set, at+1)
		}
	}
}
