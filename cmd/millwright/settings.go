package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"millwright/runs/worker"
	"millwright/schema"
	"millwright/state"
	"millwright/trace"
)

const defaultState = ".millwright/state.db"

// settings are everything that serve can be told, by the settings file and by flags.
type settings struct {
	Listen         string             `json:"listen"`
	PublicURL      string             `json:"publicUrl"`
	TLS            tlsSettings        `json:"tls"`
	State          string             `json:"state"`
	MasterKeyFile  string             `json:"masterKeyFile"`
	TrustedProxies []string           `json:"trustedProxies"`
	CORSOrigins    []string           `json:"corsOrigins"`
	MetricsListen  string             `json:"metricsListen"`
	OTLPEndpoint   string             `json:"otlpEndpoint"`
	Grace          duration           `json:"grace"`
	Workers        *int               `json:"workers"`
	NATS           natsSettings       `json:"nats"`
	Factories      []factorySettings  `json:"factories"`
	Harness        string             `json:"harness"`
	Harnesses      map[string]harness `json:"harnesses"`
	Limits         limits             `json:"limits"`
	Retention      retention          `json:"retention"`
}

type tlsSettings struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

type natsSettings struct {
	Listen      string   `json:"listen"`
	Cluster     []string `json:"cluster"`
	URL         string   `json:"url"`
	Credentials string   `json:"credentials"`
}

type factorySettings struct {
	Name      string         `json:"name"`
	Suspended bool           `json:"suspended"`
	Source    sourceSettings `json:"source"`
}

type sourceSettings struct {
	Dir         string       `json:"dir"`
	Git         *gitSettings `json:"git"`
	Managed     *struct{}    `json:"managed"`
	Interval    duration     `json:"interval"`
	AllowPrune  bool         `json:"allowPrune"`
	AllowRename bool         `json:"allowRename"`
}

type gitSettings struct {
	URL          string   `json:"url"`
	Branch       string   `json:"branch"`
	Tag          string   `json:"tag"`
	Commit       string   `json:"commit"`
	Path         string   `json:"path"`
	Interval     duration `json:"interval"`
	TokenSecret  string   `json:"tokenSecret"`
	Username     string   `json:"username"`
	SSHKeySecret string   `json:"sshKeySecret"`
	KnownHosts   string   `json:"knownHosts"`
	PushSecret   string   `json:"pushSecret"`
	PushScheme   string   `json:"pushScheme"`
}

type harness struct {
	Command   []string          `json:"command"`
	Adapter   string            `json:"adapter"`
	Env       []string          `json:"env"`
	Timeout   duration          `json:"timeout"`
	User      string            `json:"user"`
	SameUser  bool              `json:"sameUser"`
	Container *worker.Container `json:"container"`
}

type limits struct {
	DeliveriesPerMinute int      `json:"deliveriesPerMinute"`
	FailedAuthPerMinute int      `json:"failedAuthPerMinute"`
	InFlightBytes       byteSize `json:"inFlightBytes"`
}

type retention struct {
	Deliveries struct {
		Keep int `json:"keep"`
		Days int `json:"days"`
	} `json:"deliveries"`
	Runs struct {
		Days int `json:"days"`
	} `json:"runs"`
}

// duration is a time span written like 30s or 1h30m.
type duration time.Duration

// UnmarshalJSON reads a duration in Go's form.
func (d *duration) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return errors.New("want a duration like 30s")
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: want one like 30s or 1h", text)
	}
	*d = duration(v)
	return nil
}

func (d duration) or(fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return time.Duration(d)
}

// byteSize is a number of bytes, written as it is or like 64MiB.
type byteSize int64

var byteSizeForm = regexp.MustCompile(`^(\d{1,12})\s*(|B|KiB|MiB|GiB|KB|MB|GB)$`)

// UnmarshalJSON reads a size in bytes, or with a unit.
func (n *byteSize) UnmarshalJSON(b []byte) error {
	m := byteSizeForm.FindStringSubmatch(strings.Trim(string(b), `"`))
	if m == nil {
		return fmt.Errorf("%s is not a size: want one like 64MiB", b)
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	*n = byteSize(v * map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9}[m[2]])
	return err
}

// readSettings reads a settings file. Every problem in it is in the error, which is a usage error.
func readSettings(file string) (settings, error) {
	var s settings
	src, err := os.ReadFile(file)
	if err != nil {
		return s, usage("--config: %w", err)
	}
	if problems := unknownKeys(src, reflect.TypeFor[settings](), ""); len(problems) > 0 {
		return s, usage("%s: %s", file, strings.Join(problems, "\n  "))
	}
	if err := yaml.UnmarshalStrict(src, &s); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return s, usage("%s: %s: want %s, not %s", file, wrong.Field, kindOf(wrong.Type), wrong.Value)
		}
		return s, usage("%s: %s", file, strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "), "while decoding JSON: "))
	}
	base := filepath.Dir(file)
	for i := range s.Factories {
		if dir := &s.Factories[i].Source.Dir; *dir != "" && !filepath.IsAbs(*dir) {
			*dir = filepath.Join(base, *dir)
		}
	}
	return s, s.check(file)
}

// kindOf names what a setting of type t is to be.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	}
	return "keys and values"
}

// unknownKeys names the keys of a document that t has no field for, each with the nearest one.
func unknownKeys(src []byte, t reflect.Type, at string) []string {
	var doc any
	if yaml.Unmarshal(src, &doc) != nil {
		return nil // strict decoding says it better
	}
	return unknownIn(doc, t, at)
}

func unknownIn(v any, t reflect.Type, at string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var problems []string
	switch v := v.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i, item := range v {
				problems = append(problems, unknownIn(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			place := strings.TrimPrefix(at+"."+k, ".")
			switch t.Kind() {
			case reflect.Map:
				problems = append(problems, unknownIn(v[k], t.Elem(), place)...)
			case reflect.Struct:
				field, known := jsonField(t, k)
				if field != nil {
					problems = append(problems, unknownIn(v[k], field, place)...)
				} else if near := schema.Nearest(k, known); near != "" {
					problems = append(problems, fmt.Sprintf("unknown key %s: did you mean %s?", place, near))
				} else {
					problems = append(problems, fmt.Sprintf("unknown key %s: there is %s", place, strings.Join(known, ", ")))
				}
			}
		}
	}
	return problems
}

func jsonField(t reflect.Type, key string) (reflect.Type, []string) {
	var known []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" { // of a type of another package
			name = strings.ToLower(t.Field(i).Name)
		}
		if name == key {
			return t.Field(i).Type, nil
		}
		known = append(known, name)
	}
	return nil, known
}

var factoryNameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// check refuses settings that cannot be served, before anything is opened.
func (s *settings) check(from string) error {
	bad := func(format string, args ...any) error { return usage("%s: "+format, append([]any{from}, args...)...) }
	seen := map[string]bool{}
	for i, f := range s.Factories {
		if !factoryNameForm.MatchString(f.Name) {
			return bad("factories[%d].name %q: want 1 to 64 letters, digits, '.', '_' or '-'", i, f.Name)
		}
		if seen[f.Name] {
			return bad("factories[%d].name: %q is there twice", i, f.Name)
		}
		seen[f.Name] = true
		kinds := 0
		for _, given := range []bool{f.Source.Dir != "", f.Source.Git != nil, f.Source.Managed != nil} {
			if given {
				kinds++
			}
		}
		if kinds != 1 {
			return bad("factories[%d].source: want exactly one of dir, git and managed", i)
		}
		if g := f.Source.Git; g != nil {
			if g.URL == "" {
				return bad("factories[%d].source.git.url is missing", i)
			}
			if g.PushScheme != "" && !slices.Contains([]string{"github", "gitlab", "gitea"}, g.PushScheme) {
				return bad("factories[%d].source.git.pushScheme %q: want github, gitlab or gitea", i, g.PushScheme)
			}
		}
	}
	for name, h := range s.Harnesses {
		if len(h.Command) == 0 && h.Container == nil {
			return bad("harnesses.%s.command is missing", name)
		}
		if h.User == "" && h.Container == nil && !h.SameUser {
			return bad("harnesses.%s: agents work on text that outsiders wrote: give user (another account to run as), container, or sameUser: true", name)
		}
	}
	if s.Harness != "" && s.Harness != "echo" {
		if _, ok := s.Harnesses[s.Harness]; !ok {
			return bad("harness %q is not one of harnesses", s.Harness)
		}
	}
	if _, err := s.proxies(); err != nil {
		return bad("trustedProxies: %w", err)
	}
	if s.PublicURL != "" {
		if u, err := url.Parse(s.PublicURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return bad("publicUrl %q: want an origin like https://hooks.example.com", s.PublicURL)
		}
	}
	if s.OTLPEndpoint != "" {
		if _, err := trace.CheckEndpoint(s.OTLPEndpoint); err != nil {
			return bad("otlpEndpoint: %w", err)
		}
	}
	if strings.Contains(s.State, "://") {
		if _, ok := state.SQLitePath(s.State); ok {
			return bad("state: want a path, sqlite:PATH or postgres://…")
		}
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return bad("tls: give both cert and key")
	}
	return nil
}

func (s *settings) proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range s.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("%q is not an address or a network like 10.0.0.0/8", text)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

func nearestFlag(cmd *cobra.Command, name string) string {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	return schema.Nearest(strings.SplitN(name, "=", 2)[0], known)
}
