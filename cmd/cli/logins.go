package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"millwright/api"
)

// logins are the servers that millwright login stored, with their keys. Only their user may read the file.
type logins struct {
	Current string           `json:"current"`
	Servers map[string]login `json:"servers"` // by name
}

type login struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// maxLogins bounds the file of logins, in bytes.
const maxLogins = 1 << 20

// loginsFile returns the file of logins in the user's configuration directory.
func loginsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", errors.New("the configuration directory is unknown: set HOME or XDG_CONFIG_HOME")
	}
	return filepath.Join(dir, "millwright", "logins.json"), nil
}

// readLogins reads the file of logins. It has none if the file does not exist.
func readLogins() (logins, error) {
	var all logins
	file, err := loginsFile()
	if err != nil {
		return all, nil
	}

	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, couldNotCheck(fmt.Errorf("logins: %w", err))
	}

	if !info.Mode().IsRegular() || info.Size() > maxLogins {
		return all, damagedLogins(file)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 && runtime.GOOS != "windows" {
		return all, couldNotCheck(fmt.Errorf(
			"other users may read the keys in %s (mode %04o): run chmod 600 %s, and replace keys that "+
				"they may have read",
			file, info.Mode().Perm(), file))
	}

	f, err := os.Open(file)
	if err != nil {
		return all, couldNotCheck(fmt.Errorf("logins: %w", err))
	}
	defer f.Close()

	text, err := io.ReadAll(io.LimitReader(f, maxLogins))
	if err != nil {
		return all, couldNotCheck(fmt.Errorf("logins: %w", err))
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&all); err != nil || !all.complete() {
		return logins{}, damagedLogins(file)
	}
	return all, nil
}

// damagedLogins is the error of a file that is not what millwright login wrote. It does not quote the file.
func damagedLogins(file string) error {
	return couldNotCheck(fmt.Errorf(
		"%s is damaged: run millwright logout --all, which removes it, and log in again", file))
}

// complete reports whether every login has an address and a key, and the current one exists.
func (l logins) complete() bool {
	for _, one := range l.Servers {
		if address, err := serverURL(one.URL); err != nil || address != one.URL || one.Key == "" {
			return false
		}
	}

	_, known := l.Servers[l.Current]
	return known || l.Current == ""
}

// write replaces the file of logins, or removes it if there are none.
func (l logins) write() error {
	file, err := loginsFile()
	if err != nil {
		return err
	}
	if len(l.Servers) == 0 {
		return removeLogins(file)
	}

	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}

	next, err := os.CreateTemp(filepath.Dir(file), ".logins-") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())

	_, err = next.Write(append(text, '\n'))
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), file)
}

func removeLogins(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// named returns the names of the logins for a message.
func (l logins) named() string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(l.Servers)), ", "), "none")
}

// of returns the name of the login of a server, the current one first.
func (l logins) of(address string) string {
	if one, known := l.Servers[l.Current]; known && one.URL == address {
		return l.Current
	}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		if l.Servers[name].URL == address {
			return name
		}
	}
	return ""
}

// localServer is the server of commands that nothing else names one to.
const localServer = "http://127.0.0.1:8080"

// serverURL returns the address of a server in the form that requests begin with.
func serverURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("want a URL like %s", localServer)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("want a URL like %s, without user, query and fragment", localServer)
	}

	return strings.TrimSuffix(strings.TrimSuffix(text, "/"), api.Base), nil
}
