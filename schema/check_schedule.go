package schema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

// cronWords are the descriptors a schedule may be.
var cronWords = []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}

// maxCronText bounds what is given to the cron parser.
const maxCronText = 256

// wholeDuration is the duration of "@every".
var wholeDuration = regexp.MustCompile(`^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$`)

var cronItem = regexp.MustCompile(`^(\*|[0-9]{1,2}(-[0-9]{1,2})?|[A-Za-z]{3}(-[A-Za-z]{3})?)(/[0-9]{1,2})?$`)

// ParseCron parses a schedule: five fields (minute, hour, day of the month,
// month, day of the week), one of @hourly, @daily, @midnight, @weekly, @monthly,
// @yearly and @annually, or "@every" and a duration such as 1h30m.
// Times are always UTC. A schedule that never fires, such as 30 February, is an
// error.
func ParseCron(text string) (cron.Schedule, error) {
	if err := checkCron(text); err != nil {
		return nil, err
	}

	if duration, ok := strings.CutPrefix(text, "@every "); ok {
		every, err := time.ParseDuration(duration)
		if err != nil || !wholeDuration.MatchString(duration) || every <= 0 {
			return nil, fmt.Errorf(
				"%s is not a duration of whole hours, minutes and seconds, such as 1h30m", quoted(duration))
		}

		return cron.Every(every), nil
	}

	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, err
	}

	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return parsed, nil
	}

	s.Location = time.UTC

	// Every day that there is comes in 2024, a leap year.
	if s.Next(time.Date(2023, 12, 31, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("no month has this day, so it would never fire")
	}

	return s, nil
}

// checkCron admits only the listed forms. The parser behind it takes more (time
// zones, a question mark, empty list items), and panics on some of it.
func checkCron(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("the schedule is empty")
	case len(text) > maxCronText:
		return fmt.Errorf("the schedule is longer than %d characters", maxCronText)
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return errors.New("time zones are not supported: schedules are always UTC")
	case text != strings.TrimSpace(text):
		return errors.New("the schedule has blanks at its ends")
	case strings.HasPrefix(text, "@every "):
		return nil
	case strings.HasPrefix(text, "@"):
		if slices.Contains(cronWords, text) {
			return nil
		}

		if text == "@every" {
			return errors.New("@every takes a duration, for example: @every 90m")
		}

		return fmt.Errorf("%s is not known", quoted(text))
	}

	fields := strings.Fields(text)
	if len(fields) != 5 {
		err := fmt.Errorf("a schedule has five fields, and this has %d", len(fields))
		if len(fields) > 5 {
			err = fmt.Errorf("%w: there is none for seconds or years", err)
		}

		return err
	}

	names := [...]string{"a minute", "an hour", "a day of the month", "a month", "a day of the week"}
	for i, f := range fields {
		for item := range strings.SplitSeq(f, ",") {
			if !cronItem.MatchString(item) {
				return fmt.Errorf("%s is not %s", quoted(f), names[i])
			}
		}
	}

	return nil
}

func (d *document) schedule(trigger, key, n *yaml.Node, m map[string]any, t *Trigger) {
	if key == nil && t.Filter != nil {
		d.notFired(child(trigger, "provider"), t.Provider,
			"schedules that filter.schedule_ids names are a hosted service's")
		return
	}
	if key == nil {
		if misplaced, _ := find(trigger, "cron"); misplaced != nil {
			return // reported as an unknown key
		}

		at, _ := find(trigger, "provider")
		d.errorAt(at, ruleSchedule, "a schedule trigger needs schedule.cron", missingHints["cron"])
		return
	}

	s, ok := m["schedule"].(map[string]any)
	if !ok {
		return
	}

	t.Schedule = &Schedule{Cron: text(s, "cron"), Name: text(s, "name")}
	at := child(n, "cron")
	if at == nil || d.bad[at] {
		return
	}

	if _, err := ParseCron(t.Schedule.Cron); err != nil {
		hint := "five fields in UTC (minute hour day month weekday), or " + listed(
			append(append([]string{}, cronWords...), "@every 90m"),
		)
		near := ""
		if strings.HasPrefix(t.Schedule.Cron, "@") {
			near = suggest(t.Schedule.Cron, cronWords)
			hint = didYouMean(near, hint)
		}
		if strings.Contains(err.Error(), "above maximum (6)") {
			hint = "the days of the week are 0 (Sunday) to 6, or SUN to SAT"
		}
		if p := d.errorAt(at, ruleSchedule, fmt.Sprintf("%s is not a schedule: %v", shown(at), err), hint); p != nil &&
			near != "" {
			p.Fix = d.replaceQuoted(at, near)
		}
	}
}
