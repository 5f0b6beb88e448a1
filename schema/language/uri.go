package language

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// pathOf returns the absolute path of a file's URI. It reports false for other URIs, such as those of texts
// that have no file.
func pathOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" ||
		strings.Contains(u.Path, "\x00") {
		return "", false
	}

	name := u.Path
	if runtime.GOOS == "windows" {
		name = strings.TrimPrefix(name, "/")
	}

	name = filepath.Clean(filepath.FromSlash(name))
	return name, filepath.IsAbs(name)
}

// uriOf returns the URI of an absolute path.
func uriOf(name string) string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return (&url.URL{Scheme: "file", Path: name}).String()
}
