package schema_test

import (
	"strings"
	"testing"
	"time"

	"millwright/schema"
)

func TestParseCron(t *testing.T) {
	from := time.Date(2026, 2, 27, 13, 30, 0, 0, time.FixedZone("elsewhere", 5*3600))
	tests := []struct{ cron, next string }{ // no next: refused
		{"* * * * *", "2026-02-27T08:31:00Z"},
		{"0 6 * * 1-5", "2026-03-02T06:00:00Z"},
		{"*/15 8-18 1,15 jan-mar MON", "2026-03-01T08:00:00Z"},
		{"0 0 29 2 *", "2028-02-29T00:00:00Z"},
		{"0 0 31 12 *", "2026-12-31T00:00:00Z"},
		{"30 4 1-7/2 * *", "2026-03-01T04:30:00Z"},
		{"@hourly", "2026-02-27T09:00:00Z"},
		{"@daily", "2026-02-28T00:00:00Z"},
		{"@midnight", "2026-02-28T00:00:00Z"},
		{"@weekly", "2026-03-01T00:00:00Z"},
		{"@monthly", "2026-03-01T00:00:00Z"},
		{"@yearly", "2027-01-01T00:00:00Z"},
		{"@annually", "2027-01-01T00:00:00Z"},
		{"@every 90m", "2026-02-27T10:00:00Z"},
		{"@every 1h30m10s", "2026-02-27T10:00:10Z"},
		{cron: ""},
		{cron: " "},
		{cron: " @daily"},
		{cron: "@daily "},
		{cron: "@Daily"},
		{cron: "@reboot"},
		{cron: "@every"},
		{cron: "@every "},
		{cron: "@every 10"},
		{cron: "@every -1h"},
		{cron: "@every 0s"},
		{cron: "@every 100ms"},
		{cron: "@every 1500ms"},
		{cron: "@every 99999999999999h"},
		{cron: "TZ=UTC * * * * *"},
		{cron: "CRON_TZ=Europe/Berlin 0 6 * * *"},
		{cron: "TZ="},
		{cron: "TZ=UTC"},
		{cron: "* * * *"},
		{cron: "* * * * * *"},
		{cron: "0 0 30 2 *"},
		{cron: "0 0 31 4,6,9,11 *"},
		{cron: "60 * * * *"},
		{cron: "* 24 * * *"},
		{cron: "* * 0 * *"},
		{cron: "* * 32 * *"},
		{cron: "* * * 13 *"},
		{cron: "* * * * 8"},
		{cron: "*/0 * * * *"},
		{cron: "5-1 * * * *"},
		{cron: "1-2-3 * * * *"},
		{cron: "1/2/3 * * * *"},
		{cron: ", * * * *"},
		{cron: "1,,2 * * * *"},
		{cron: "? * * * *"},
		{cron: "-1 * * * *"},
		{cron: "+1 * * * *"},
		{cron: "x * * * *"},
		{cron: "* * * foo *"},
		{cron: "9999999999999999999 * * * *"},
		{cron: "1 * * * *\x00"},
		{cron: strings.Repeat("1,", 1000) + "1 * * * *"},
	}
	for _, tt := range tests {
		s, err := schema.ParseCron(tt.cron)
		if tt.next == "" {
			if err == nil {
				t.Errorf("%q is accepted", tt.cron)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.cron, err)
			continue
		}
		if got := s.Next(from).UTC().Format(time.RFC3339); got != tt.next {
			t.Errorf("%q: next is %s, want %s", tt.cron, got, tt.next)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"* * * * *", "@every 1h", "TZ= ", "CRON_TZ=x", "0 0 29 2 *", "1-2/3,4 * * jan sun"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schema.ParseCron(text)
		if err != nil {
			return
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 3 {
			next := s.Next(now)
			if !next.After(now) || next.Location() != time.UTC {
				t.Fatalf("%q: after %s comes %s", text, now, next)
			}
			now = next
		}
	})
}
