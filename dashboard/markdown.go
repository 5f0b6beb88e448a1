package dashboard

import (
	"bytes"
	"html/template"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	mdtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newMarkdown returns the renderer of what agents write. HTML in it is text like any other, images are
// links, and only links to http, https and mailto lead anywhere.
func newMarkdown() goldmark.Markdown {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	}

	inlines := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewEmphasisParser(), 500),
	}

	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(blocks...),
			parser.WithInlineParsers(inlines...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		)),
		goldmark.WithRendererOptions(
			html.WithHardWraps(),
			renderer.WithNodeRenderers(util.Prioritized(markdownNodes{}, 1)),
		),
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)),
			extension.Strikethrough,
			extension.Linkify,
		),
	)
}

// Bounds of what is rendered. The parser's time grows with the square of both.
const (
	maxNesting  = 32  // of quotes and lists
	maxBrackets = 500 // in a text
)

// markdown renders a text, and reports whether Markdown says more of it than plain text does. It leaves a
// text as it is that would take long, or whose HTML would be out of proportion.
func (d *dashboard) markdown(source string) (rendered template.HTML, structured bool) {
	if strings.Count(source, "[") > maxBrackets || nested(source) > maxNesting {
		return "", false
	}

	in := []byte(source)
	root := d.prose.Parser().Parse(mdtext.NewReader(in))
	if !hasStructure(root) {
		return "", false
	}

	var out bytes.Buffer
	if err := d.prose.Renderer().Render(&out, in, root); err != nil || out.Len() > 8*len(in)+1024 {
		return "", false
	}

	return template.HTML(out.String()), true
}

// nested returns how many quotes and lists a line begins at most.
func nested(source string) (most int) {
	for line := range strings.Lines(source) {
		depth := 0
		for i := range len(line) - 1 {
			c, next := line[i], line[i+1]
			if !strings.ContainsRune(" \t>-*+.)0123456789", rune(c)) {
				break
			}
			if c == '>' || strings.ContainsRune("-*+.)", rune(c)) && (next == ' ' || next == '\t') {
				depth++
			}
		}

		most = max(most, depth)
	}

	return most
}

// hasStructure reports whether a document has anything but paragraphs of plain text.
func hasStructure(root ast.Node) (found bool) {
	// Only nodes that cannot be read as plain text as well count: an address is one either way.
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindHeading, ast.KindList, ast.KindFencedCodeBlock, ast.KindBlockquote, extast.KindTable,
			ast.KindCodeSpan, ast.KindLink, ast.KindImage:
			found = true
		case ast.KindEmphasis:
			found = found || n.(*ast.Emphasis).Level > 1
		}

		if found {
			return ast.WalkStop, nil
		}

		return ast.WalkContinue, nil
	})
	return found
}

// markdownNodes renders the nodes that would lead somewhere, or change the page's outline.
type markdownNodes struct{}

// RegisterFuncs registers these nodes.
func (markdownNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindLink, renderLink)
	r.Register(ast.KindImage, renderLink)
	r.Register(ast.KindAutoLink, renderAutoLink)
}

// renderHeading writes a bold paragraph: the headings of the page are its own.
func renderHeading(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<p class="heading">`)
	} else {
		_, _ = w.WriteString("</p>\n")
	}
	return ast.WalkContinue, nil
}

// renderLink writes a link or an image as a link, followed by the host that it leads to: its text is the
// agent's.
func renderLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	var to []byte
	switch n := n.(type) {
	case *ast.Link:
		to = n.Destination
	case *ast.Image:
		to = n.Destination
	}

	address, host := outside(string(to))
	switch {
	case address == "":
	case entering:
		openLink(w, address)
	default:
		_, _ = w.WriteString("</a>")
	}

	if !entering && host != "" {
		_, _ = w.WriteString(` <span class="quiet">(`)
		_, _ = w.Write(util.EscapeHTML([]byte(host)))
		_, _ = w.WriteString(`)</span>`)
	}

	return ast.WalkContinue, nil
}

func renderAutoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	link := n.(*ast.AutoLink)
	label := link.Label(source)
	address, _ := outside(string(link.URL(source)))
	if address != "" {
		openLink(w, address)
	}

	_, _ = w.Write(util.EscapeHTML(label))
	if address != "" {
		_, _ = w.WriteString("</a>")
	}

	return ast.WalkContinue, nil
}

func openLink(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a rel="noreferrer nofollow" href="`)
	_, _ = w.Write(util.EscapeHTML([]byte(address)))
	_, _ = w.WriteString(`">`)
}

// outside returns the address of a link that may lead somewhere, and the host that it names.
func outside(to string) (address, host string) {
	u, err := url.Parse(strings.TrimSpace(to))
	if err != nil {
		return "", ""
	}

	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return "", ""
		}
		return u.String(), u.Hostname()
	case "mailto":
		return u.String(), ""
	}

	return "", ""
}
